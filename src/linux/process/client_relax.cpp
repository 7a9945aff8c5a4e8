// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/client_relax.h"

#include "linux/process/cpu_pause.h"
#include "platform/client_host.h"
#include "platform/yield_gauge.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace ib::os {
namespace {

// First the other core is about to finish, then it may need this core.
constexpr std::uint32_t kPauseRounds = platform::ClientHost::kYieldRound;
constexpr std::uint32_t kYieldRounds = 4096;

constinit platform::YieldGauge gauge;  // of the threads of this process

}  // namespace

Instant monotonic_now() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

bool yield_core() {
  const Instant start = monotonic_now();
  if (!gauge.may_yield(start)) return false;
  (void)::sched_yield();
  gauge.yielded(start, monotonic_now());
  return true;
}

void relax_thread(std::uint32_t round) {
  if (round < kPauseRounds) {
    cpu_pause();
  } else if (round >= kYieldRounds || !yield_core()) {
    // A thread of real-time priority that only yields would never let a normal one run. By number:
    // posting and polling have no cancellation point.
    const timespec moment{0, 50'000};
    (void)::syscall(SYS_nanosleep, &moment, nullptr);
  }
}

}  // namespace ib::os
