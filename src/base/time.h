// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The only time types of the stack. Only src/linux reads a clock: time is an argument.
#pragma once

#include <chrono>

namespace ib {

using Duration = std::chrono::nanoseconds;

// A clock without now(): the event loop and the tests each supply the value.
struct StackClock {
  using duration = Duration;
};
using Instant = std::chrono::time_point<StackClock, Duration>;

}  // namespace ib
