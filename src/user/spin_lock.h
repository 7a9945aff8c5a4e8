// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SpinLock: for sections of tens of nanoseconds between threads of one process (posting, polling).
// A waiter yields the core after a while, since on few cores the holder may be off it.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>  // tidy: allow(layers) yield only

namespace ib::user {

class SpinLock {
 public:
  void lock() {
    for (std::uint32_t round = 0; !try_lock(); ++round) {
      if (round >= kSpins) std::this_thread::yield();
    }
  }
  bool try_lock() {
    // Relaxed: a hint, which spares the exchange; that one acquires.
    return held_.load(std::memory_order_relaxed) == 0 &&
           held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() { held_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kSpins = 64;
  std::atomic<std::uint32_t> held_{0};
};

}  // namespace ib::user
