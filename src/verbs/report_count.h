// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Repeated reports go to the trace less and less often, with a count.
#pragma once

#include "verbs/control_buffers.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace ib::verbs {

// Returns the count to report for the `n`th repetition, or 0 for no report. The first ones are
// reported one by one, so that small numbers are exact; later ones when their number has doubled,
// since a program may repeat a mistake a million times a second.
constexpr std::uint32_t report_count(std::uint32_t n) {
  constexpr std::uint32_t kOneByOne = 8;
  if (n <= kOneByOne) return 1;
  return std::has_single_bit(n) ? n / 2 : 0;
}

// The last field of a report is its count; clients that do not set it mean one.
constexpr void set_times(control::TraceErrorIn& report, std::uint32_t times) {
  report.reserved = times;
}
constexpr std::uint32_t times_of(const control::TraceErrorIn& report) {
  return std::max(report.reserved, 1u);
}

}  // namespace ib::verbs
