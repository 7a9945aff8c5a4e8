// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sa/records/selector.h"

#include <algorithm>

namespace ib::sa {
namespace {

constexpr std::uint8_t kMostLife = 63;
constexpr std::uint8_t kMostRate = 24;

// The fastest rate that is slower than `limit` (in 100 Mb/s) and not faster than `best`; 0: none.
std::uint8_t slower_than(std::uint32_t limit, std::uint8_t best) {
  std::uint8_t found = 0;
  for (std::uint8_t rate = 0; rate <= kMostRate; ++rate) {
    const std::uint32_t speed = rate_in_100_mbps(rate);
    if (speed != 0 && speed < limit && rate_fits(rate, best) && rate_fits(found, rate)) {
      found = rate;
    }
  }
  return found;
}

}  // namespace

std::uint8_t rate_of(std::uint8_t width, std::uint8_t speed) {
  std::uint32_t lanes = width == 16 ? 2 : width;
  if (width == 2) lanes = 4;
  if (width == 4) lanes = 8;
  if (width == 8) lanes = 12;
  std::uint32_t lane = 0;  // 100 Mb/s
  switch (speed) {
    case 1: lane = 25; break;
    case 2: lane = 50; break;
    case 4:
    case 8: lane = 100; break;  // QDR, FDR10
    case 16: lane = 140; break;
    case 32: lane = 250; break;
    case 64: lane = 500; break;
    case 128: lane = 1000; break;
    default: return 0;
  }
  for (std::uint8_t rate = 0; rate <= kMostRate; ++rate) {
    if (rate_in_100_mbps(rate) == lanes * lane && lanes != 0) return rate;
  }
  return 0;
}

std::uint8_t select_mtu(Selector selector, std::uint8_t wanted, std::uint8_t best) {
  constexpr auto kLeast = static_cast<std::uint8_t>(verbs::Mtu::B256);
  switch (selector) {
    case Selector::Greater: return best > wanted ? best : 0;
    case Selector::Less:
      if (wanted <= kLeast) return 0;
      return std::min<std::uint8_t>(best, wanted - 1);
    case Selector::Exactly: return wanted >= kLeast && best >= wanted ? wanted : 0;
    case Selector::Best: return best;
  }
  return 0;
}

std::uint8_t select_rate(Selector selector, std::uint8_t wanted, std::uint8_t best) {
  const std::uint32_t limit = rate_in_100_mbps(wanted);
  switch (selector) {
    case Selector::Greater: return rate_in_100_mbps(best) > limit ? best : 0;
    case Selector::Less: return slower_than(limit, best);
    case Selector::Exactly: return limit != 0 && rate_fits(wanted, best) ? wanted : 0;
    case Selector::Best: return best;
  }
  return 0;
}

SelectedLife select_life(Selector selector, std::uint8_t wanted, std::uint8_t best) {
  switch (selector) {
    case Selector::Greater:
      if (wanted >= kMostLife) return {};
      return {std::max<std::uint8_t>(best, wanted + 1), true};
    case Selector::Less: return {best, best < wanted};
    case Selector::Exactly: return {wanted, best <= wanted};
    case Selector::Best: return {best, true};
  }
  return {};
}

}  // namespace ib::sa
