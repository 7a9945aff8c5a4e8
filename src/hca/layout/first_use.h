// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// First use: a connected queue pair that no thread has ever worked with can be stopped and
// destroyed without a Quiescence, whose barrier interrupts other cores.
//
// A thread that works with a queue pair, of its owner or of the requester at the other end, says so
// in its entry before it looks at its state, with a full barrier the first time. softibd changes
// the state first, and then looks whether somebody has said so. One of the two sees what the other
// has stored. A second thread needs no barrier of its own, but only once the first has passed its
// one: so the entry says that as well.
#pragma once

#include "hca/layout/layout.h"

#include <atomic>

namespace ib::hca {

namespace use {
inline constexpr std::uint32_t kBegun = 1;   // QpEntry::waiter.has_begun
inline constexpr std::uint32_t kBegins = 2;  // the barrier is still to come
// Out of line, since it is for the first request only.
[[gnu::noinline]] inline void begin(QpEntry& entry) {
  entry.waiter.has_begun.store(kBegins, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  entry.waiter.has_begun.store(kBegun, std::memory_order_release);
}
}  // namespace use

// Inside of an OpScope, before the state is read.
inline void begin_use(QpEntry& entry) {
  // Acquire: what is read next is as new as that barrier.
  if (entry.waiter.has_begun.load(std::memory_order_acquire) != use::kBegun) [[unlikely]]
    use::begin(entry);
}

// After a change of its number or state that sends all users away. Returns true if nobody works
// with it, and nobody will.
inline bool was_never_used(const QpEntry& entry) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return entry.waiter.has_begun.load(std::memory_order_relaxed) == 0;
}

}  // namespace ib::hca
