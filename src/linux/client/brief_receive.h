// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving an answer of softibd: polls for a moment where that is worthwhile, then sleeps.
#pragma once

#include "base/time.h"
#include "platform/brief_polling.h"

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <ctime>

namespace ib::os {

// receive(flags) is one recvmsg() with these flags besides its own; returns its result and errno.
template <class Receive>
ssize_t receive_briefly(platform::BriefPolling& polling, Receive&& receive) {
  const auto now = [] {
    timespec t{};
    (void)::clock_gettime(CLOCK_MONOTONIC, &t);
    return Duration(std::chrono::seconds(t.tv_sec)) + std::chrono::nanoseconds(t.tv_nsec);
  };
  if (polling.should_poll()) {
    const Duration end = now() + platform::BriefPolling::kBudget;
    do {
      const ssize_t got = receive(MSG_DONTWAIT);
      if (got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
        polling.hit();
        return got;
      }
    } while (now() < end);
    polling.missed();
  }
  const Duration start = now();
  const ssize_t got = receive(0);
  polling.slept(now() - start);
  return got;
}

}  // namespace ib::os
