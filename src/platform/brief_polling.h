// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a thread that waits for a message polls for a moment before it sleeps.
//
// Sleeping and waking cost several microseconds, in virtual machines tens of them, more than the
// work of most control requests, and a client that sends one request after the other meets them
// twice for each. Polling is worthwhile if the last waits were short and polling helps: where both
// sides share a processor it never does, so each miss doubles the number of waits that sleep at
// once, and each hit halves it. A thread with long waits never polls.
//
// Pure: the caller has the clock. Thread rule: one thread at a time; a copy is a value.
#pragma once

#include "base/time.h"

#include <algorithm>
#include <cstdint>

namespace ib::platform {

class BriefPolling {
 public:
  // The time to poll before sleep. Longer than it takes the other side to wake: if both sides give
  // up before the other one is awake, both sleep in every wait.
  static constexpr Duration kBudget = std::chrono::microseconds(30);
  // Likewise where each look that finds nothing yields the core, so that polling holds up nobody:
  // it outlasts work for others that the other side has to do first.
  static constexpr Duration kYieldingBudget = std::chrono::microseconds(100);
  // The time to look before the first yield, unless both sides share a core. A third thread may be
  // waiting for this one, but a change to it and back costs more than most answers take.
  static constexpr Duration kPatienceOfClient = std::chrono::microseconds(16);
  // Of softibd there may be no request for long.
  static constexpr Duration kPatienceOfServer = std::chrono::microseconds(4);
  // A sleep up to this time was short: longer than the budget, since waking is part of it.
  static constexpr Duration kShortSleep = std::chrono::microseconds(200);
  // The most waits that sleep at once after a miss.
  static constexpr std::uint16_t kMostSkipped = 128;

  // Before each wait. Returns true if the caller should poll for the budget; it then calls hit() or
  // missed().
  [[nodiscard]] bool should_poll() {
    if (!worthwhile_) return false;
    if (to_skip_ == 0) return true;
    --to_skip_;
    return false;
  }

  void hit() { skipped_ /= 2; }
  void missed() {
    skipped_ = static_cast<std::uint16_t>(
        std::clamp<std::uint32_t>(2u * skipped_, 1u, std::uint32_t{kMostSkipped}));
    to_skip_ = skipped_;
  }
  // After each wait that slept.
  void slept(Duration time) { worthwhile_ = time <= kShortSleep; }

 private:
  // Eight bytes in all, so that an atomic one is free of locks.
  alignas(8) std::uint16_t skipped_ =
      0;  // the number of waits that slept at once after the last miss
  std::uint16_t to_skip_ = 0;
  bool worthwhile_ = false;
};

}  // namespace ib::platform
