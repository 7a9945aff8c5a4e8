// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpScope: "this thread is executing a work request" (an OpGuard on its own ThreadWord).
#pragma once

#include "hca/memory_plane.h"

namespace ib::hca {

class OpScope {
 public:
  explicit OpScope(MemoryPlane& plane) : OpScope(plane, plane.thread_word()) {}
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope() {
    if (!nested_)
      word_.sequence.store(word_.sequence.load(std::memory_order_relaxed) + 1,
                           std::memory_order_release);
    if (lock_ != nullptr) lock_->store(0, std::memory_order_release);
  }

 private:
  OpScope(MemoryPlane& plane, ThreadWord& word) : word_(word) {
    if (plane.shares(word)) [[unlikely]]
      lock_ = share(plane);
    const std::uint64_t before = word_.sequence.load(std::memory_order_relaxed);
    nested_ = (before & 1) != 0;
    if (nested_) return;
    word_.sequence.store(before + 1, std::memory_order_relaxed);
    platform::light_barrier();  // pairs with that of Quiescence
    if (plane.fenced_entries()) std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Not a member, so that a scope can live in registers.
  [[gnu::noinline]] static std::atomic<std::uint32_t>* share(MemoryPlane& plane) {
    std::atomic<std::uint32_t>& lock = plane.shared_word_lock();
    for (std::uint32_t round = 0; lock.exchange(1, std::memory_order_acquire) != 0; ++round) {
      plane.host().relax(round);
    }
    return &lock;
  }

  ThreadWord& word_;
  std::atomic<std::uint32_t>* lock_ = nullptr;
  bool nested_ = false;
};

}  // namespace ib::hca
