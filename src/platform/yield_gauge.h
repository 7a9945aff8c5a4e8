// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a thread that waits for another one may yield its core between two looks.
//
// A thread that waits for others itself has the core for tens of microseconds after a yield. A
// program that computes keeps it for its slice, a millisecond and more, and so does each further
// one; a thread that sleeps instead is woken within a slice. So after a long yield there are none
// for a while, which doubles as long as the next yield is long, too.
//
// Pure: the caller has the clock. Thread rule: any thread; threads that overwrite each other's
// result cost a yield.
#pragma once

#include "base/time.h"

#include <algorithm>
#include <atomic>

namespace ib::platform {

class YieldGauge {
 public:
  static constexpr Duration kLongYield = std::chrono::microseconds(500);
  static constexpr Duration kShortestPause = std::chrono::milliseconds(50);
  static constexpr Duration kLongestPause = std::chrono::seconds(2);

  [[nodiscard]] bool may_yield(Instant now) const {
    return now.time_since_epoch().count() >= next_.load(std::memory_order_relaxed);
  }
  void yielded(Instant start, Instant end) {
    const Duration last{pause_.load(std::memory_order_relaxed)};
    const bool is_long = end - start > kLongYield;
    if (!is_long && last == Duration{}) return;
    const Duration pause =
        is_long ? std::clamp(2 * last, kShortestPause, kLongestPause) : Duration{};
    pause_.store(pause.count(), std::memory_order_relaxed);
    next_.store((end + pause).time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration::rep> next_{0};   // since the clock's start
  std::atomic<Duration::rep> pause_{0};  // after the last yield
};

}  // namespace ib::platform
