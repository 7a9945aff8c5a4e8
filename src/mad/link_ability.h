// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Width and speed of a link: what its two ends can do, what a subnet manager has left of that, and
// what they agree on when the link trains [IBA1 14.2.5.6].
#pragma once

#include "mad/agent.h"

#include <cstdint>
#include <optional>

namespace ib::mad {

// LinkWidthSupported, LinkSpeedSupported and LinkSpeedExtSupported, or the same masks of what is
// enabled.
struct LinkAbility {
  std::uint8_t width = 0;
  std::uint8_t speed = 0;
  std::uint8_t speed_ext = 0;
  bool operator==(const LinkAbility&) const = default;
};

// LinkSpeedExtEnabled: no speed of that mask, so that the other one counts.
inline constexpr std::uint8_t kNoExtendedSpeed = 30;

// Codes, as verbs number them: one bit each.
struct LinkRate {
  std::uint8_t width = 0;
  std::uint8_t speed = 0;
  bool operator==(const LinkRate&) const = default;
};

// A speed from FDR on (16, 32 ...) has a field of its own, beside QDR in the old one.
struct SplitSpeed {
  std::uint8_t old_one = 0;
  std::uint8_t extended = 0;
};
SplitSpeed split_speed(std::uint8_t speed);

// Of a port whose best is `best`: it does that, and all that is slower.
LinkAbility ability_of(LinkRate best);
LinkAbility enabled_of(const LinkAbility& able, const PortSettings& settings);
// The best that two ports have in common. Returns nothing if the link does not come up.
std::optional<LinkRate> common_rate(const LinkAbility& a, const LinkAbility& b);

}  // namespace ib::mad
