// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ShmLock: a spin lock in device memory whose word names its owner (slot + 1; 0: free), so that
// softibd can find and break the locks of a process that died holding them.
//
// Data under a lock is written so that a death at any store leaves it repairable (see the
// lock rules in docs/design/0003-death.md). Waiters yield, and give up after kMaxRounds rounds: a
// word that never becomes free is garbage, and garbage must not hang a process.
//
// Memory order: acquire and release, as of any lock. That of a dead process is broken by softibd,
// which the kernel has told of the death, so all stores of the dead come before the repair.
#pragma once

#include "hca/layout/tables.h"

namespace ib::hca {

inline constexpr std::uint32_t kDaemonOwner = kMaxSlots + 1;  // softibd itself
constexpr std::uint32_t lock_owner(std::uint32_t slot) {
  return slot + 1;
}

// Takes the lock if it is free. Never waits.
inline bool try_lock(Shared32& word, std::uint32_t owner) {
  std::uint32_t free = 0;
  return word.compare_exchange_strong(free, owner, std::memory_order_acquire,
                                      std::memory_order_relaxed);
}

inline void unlock(Shared32& word) {
  word.store(0, std::memory_order_release);
}

// Takes the lock, calling relax(round) between tries. Returns false if it did not become free.
template <class Relax>
bool lock(Shared32& word, std::uint32_t owner, Relax&& relax) {
  constexpr std::uint32_t kMaxRounds = 50'000;  // seconds: late rounds sleep
  for (std::uint32_t round = 0; round < kMaxRounds; ++round) {
    // Relaxed: only a hint, which spares other cores the exchange.
    if (word.load(std::memory_order_relaxed) == 0 && try_lock(word, owner)) return true;
    relax(round);
  }
  return false;
}

}  // namespace ib::hca
