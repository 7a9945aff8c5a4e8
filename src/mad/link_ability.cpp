// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/link_ability.h"

#include "verbs/link_speed.h"

#include <bit>

namespace ib::mad {
namespace {

constexpr std::uint8_t kQdr = 4;
constexpr std::uint8_t kFirstExtended = 16;

constexpr std::uint8_t up_to(std::uint8_t bit) {
  return static_cast<std::uint8_t>(bit * 2u - 1);
}

// 2x has the highest bit, and is less than 4x. A port that is wider does 1x and not 2x, as ports
// did before there was such a bit.
constexpr std::uint8_t kTwoLanes = 16;
constexpr std::uint8_t widths_up_to(std::uint8_t width) {
  return width == kTwoLanes ? std::uint8_t{kTwoLanes | 1} : up_to(width);
}

std::uint8_t widest(std::uint8_t mask) {
  std::uint8_t best = 0;
  for (unsigned bit = 1; bit <= kTwoLanes; bit *= 2) {
    const auto width = static_cast<std::uint8_t>(bit);
    const bool is_wider = best == 0 || verbs::link_lanes(width) > verbs::link_lanes(best);
    if ((mask & bit) != 0 && is_wider) best = width;
  }
  return best;
}

std::uint8_t or_else(std::uint8_t value, std::uint8_t otherwise) {
  return value != 0 ? value : otherwise;
}

}  // namespace

SplitSpeed split_speed(std::uint8_t speed) {
  if (speed < kFirstExtended) return {speed, 0};
  return {kQdr, static_cast<std::uint8_t>(speed / kFirstExtended)};
}

LinkAbility ability_of(LinkRate best) {
  const SplitSpeed speed = split_speed(best.speed);
  return {widths_up_to(best.width), up_to(speed.old_one),
          speed.extended == 0 ? std::uint8_t{0} : up_to(speed.extended)};
}

LinkAbility enabled_of(const LinkAbility& able, const PortSettings& settings) {
  LinkAbility enabled{or_else(settings.width_enabled, able.width),
                      or_else(settings.speed_enabled, able.speed),
                      or_else(settings.speed_ext_enabled, able.speed_ext)};
  if (settings.speed_ext_enabled == kNoExtendedSpeed) enabled.speed_ext = 0;
  return enabled;
}

std::optional<LinkRate> common_rate(const LinkAbility& a, const LinkAbility& b) {
  const std::uint8_t width = widest(a.width & b.width);
  const unsigned extended = std::bit_floor(unsigned{a.speed_ext} & b.speed_ext);
  const unsigned old_one = std::bit_floor(unsigned{a.speed} & b.speed);
  const unsigned speed = extended != 0 ? extended * kFirstExtended : old_one;
  if (width == 0 || speed == 0) return std::nullopt;
  return LinkRate{width, static_cast<std::uint8_t>(speed)};
}

}  // namespace ib::mad
