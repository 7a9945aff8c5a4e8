// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What repeats is reported to the trace less and less often, and counted.
#pragma once

#include "verbs/control_buffers.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ib::verbs {

// How many times to report something that has just happened for the `n`th time. The first ones one
// by one, so that small numbers are exact; later only when their number has doubled, since a
// program may repeat a mistake a million times a second.
constexpr std::uint32_t report_count(std::uint32_t n) {
  constexpr std::uint32_t kOneByOne = 8;
  if (n <= kOneByOne) return 1;
  return std::has_single_bit(n) ? n / 2 : 0;
}

// The last field of a report says of how many it is; clients that leave it alone mean one.
constexpr void set_times(control::TraceErrorIn& report, std::uint32_t times) {
  report.reserved = times;
}
constexpr std::uint32_t times_of(const control::TraceErrorIn& report) {
  return std::max(report.reserved, 1u);
}

}  // namespace ib::verbs
