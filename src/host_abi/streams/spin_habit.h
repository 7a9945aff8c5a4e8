// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SpinHabit: whether a short look before a sleep pays. Two processes that answer each other are
// faster if neither sleeps; but on a machine with few cores a look in vain keeps the peer, or
// somebody else, from a core.
//
// Credit grows with each look that finds something and shrinks with each that does not. Without any
// a thread sleeps at once, but tries a few looks in a row now and then: the peer has to try at the
// same time, or each finds the other asleep. Tries in vain become rarer. A look that took much
// longer than it should was interrupted by somebody who needs the core: then all credit is lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ib::host_abi::stream_switch {

inline constexpr std::int64_t kSpinNs = 30'000;

class SpinHabit {
 public:
  // Before a sleep.
  bool pays() {
    const int credit = credit_.load(std::memory_order_relaxed);
    if (credit > 0) return true;
    // Below zero it counts sleeps.
    const bool is_time = credit <= -(kSleeps << failures_.load(std::memory_order_relaxed));
    credit_.store(is_time ? kTries : credit - 1, std::memory_order_relaxed);
    return false;
  }
  bool pays_now() const { return credit_.load(std::memory_order_relaxed) > 0; }
  // After a look of so long.
  void end(bool has_found, std::int64_t ns) {
    const int credit = std::max(credit_.load(std::memory_order_relaxed), 0);
    if (has_found && ns < kInterrupted) {
      failures_.store(0, std::memory_order_relaxed);
      credit_.store(std::min(credit + 2, kMost), std::memory_order_relaxed);
      return;
    }
    const int left = ns < kInterrupted ? std::max(credit - 1, 0) : 0;
    credit_.store(left, std::memory_order_relaxed);
    const int failures = failures_.load(std::memory_order_relaxed);
    if (left == 0)
      failures_.store(std::min(failures + 1, kMostFailures), std::memory_order_relaxed);
  }
  void begin_again() {
    credit_.store(kAtFirst, std::memory_order_relaxed);
    failures_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr int kAtFirst = 4;
  static constexpr int kMost = 16;
  static constexpr int kTries = 2;
  static constexpr int kSleeps = 32;
  static constexpr int kMostFailures = 7;
  static constexpr std::int64_t kInterrupted = 4 * kSpinNs;

  // Threads that share one may lose a step.
  std::atomic<int> credit_{kAtFirst};
  std::atomic<int> failures_{0};
};

}  // namespace ib::host_abi::stream_switch
