// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Selectors of PathRecord and MCMemberRecord [IBA1 15.2.5.16, table 207]: a value is to be greater
// than, less than or exactly that of the request, or the best that there is. MTUs and packet life
// times are in the order of their numbers, rates are not.
#pragma once

#include "verbs/types.h"

#include <array>
#include <cstdint>

namespace ib::sa {

// Best: the largest MTU or rate, the smallest packet life time.
enum class Selector : std::uint8_t { Greater = 0, Less = 1, Exactly = 2, Best = 3 };

// A static rate in units of 100 Mb/s, by its number (ibv_rate); 0: there is no such rate.
constexpr std::uint32_t rate_in_100_mbps(std::uint8_t rate) {
  constexpr std::array<std::uint16_t, 25> kRates{
      0,    0,    25,  100,  300,  50,   200, 400, 600,  800,  1200, 140,  560,
      1120, 1680, 250, 1000, 2000, 3000, 280, 500, 4000, 6000, 8000, 12000};
  return rate < kRates.size() ? kRates[rate] : 0;
}
// The number of the rate of a port: width as verbs number it (1: 1X, 2: 4X, 4: 8X, 8: 12X, 16: 2X),
// speed likewise (1: SDR ... 16: FDR, 32: EDR, 64: HDR, 128: NDR). 0: no rate of that size.
std::uint8_t rate_of(std::uint8_t width, std::uint8_t speed);

// Returns whether `a` is as fast as `b` or slower.
constexpr bool rate_fits(std::uint8_t a, std::uint8_t b) {
  return rate_in_100_mbps(a) <= rate_in_100_mbps(b);
}

// Returns whether an order of `actual` against `wanted` (negative: less) is what is selected.
constexpr bool is_selected(Selector selector, int order) {
  switch (selector) {
    case Selector::Greater: return order > 0;
    case Selector::Less: return order < 0;
    case Selector::Exactly: return order == 0;
    case Selector::Best: return true;
  }
  return false;
}
constexpr int order_of_numbers(std::uint32_t actual, std::uint32_t wanted) {
  return actual < wanted ? -1 : static_cast<int>(actual > wanted);
}
constexpr int order_of_rates(std::uint8_t actual, std::uint8_t wanted) {
  return order_of_numbers(rate_in_100_mbps(actual), rate_in_100_mbps(wanted));
}

// The value for a path that can do `best`, so that the request gets what it selects; a
// path may always be used with a smaller MTU, a lower rate or a longer packet life time than its
// own. 0: this path cannot do it.
std::uint8_t select_mtu(Selector selector, std::uint8_t wanted, std::uint8_t best);
std::uint8_t select_rate(Selector selector, std::uint8_t wanted, std::uint8_t best);
// As packet life time 0 is one, a second value says whether the path can do it.
struct SelectedLife {
  std::uint8_t life = 0;
  bool possible = false;
};
SelectedLife select_life(Selector selector, std::uint8_t wanted, std::uint8_t best);

}  // namespace ib::sa
