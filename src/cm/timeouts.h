// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Times as messages have them: exponents of 5 bits [IBA1 12.7].
#pragma once

#include "base/time.h"

#include <algorithm>
#include <cstdint>

namespace ib::cm {

inline constexpr std::uint8_t kMaxExponent = 31;

// 4.096 us * 2^exponent.
constexpr Duration time_of(std::uint8_t exponent) {
  return Duration(std::int64_t{4096} << std::min(exponent, kMaxExponent));
}
static_assert(time_of(0) == std::chrono::nanoseconds(4096));
static_assert(time_of(20) == std::chrono::nanoseconds(4294967296));

// The exponent of 2 * packet lifetime + the other adapter's ACK delay [IBA1 12.7.34], rounded as
// Linux does: the smaller term counts only if it is at least half of the larger one.
constexpr std::uint8_t ack_timeout(std::uint8_t ack_delay, std::uint8_t packet_lifetime) {
  const unsigned twice = packet_lifetime + 1u;
  const unsigned delay = ack_delay;
  const unsigned sum =
      twice >= delay ? twice + (delay + 1 >= twice ? 1 : 0) : delay + (twice + 1 >= delay ? 1 : 0);
  return static_cast<std::uint8_t>(std::min<unsigned>(sum, kMaxExponent));
}
static_assert(ack_timeout(0, 14) == 15 && ack_timeout(15, 14) == 16 && ack_timeout(20, 3) == 20);

}  // namespace ib::cm
