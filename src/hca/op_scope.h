// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpScope: "this thread is executing a work request" (an OpGuard on its own ThreadWord).
#pragma once

#include "hca/memory_plane.h"

namespace ib::hca {

class OpScope {
 public:
  explicit OpScope(MemoryPlane& plane) : use_{plane.own_thread_word(), nullptr} {
    if (use_.word == nullptr) [[unlikely]]
      use_ = find(plane);
    const std::uint64_t before = use_.word->sequence.load(std::memory_order_relaxed);
    nested_ = (before & 1) != 0;
    if (nested_) return;
    use_.word->sequence.store(before + 1, std::memory_order_relaxed);
    platform::light_barrier();  // pairs with that of Quiescence
    if (plane.fenced_entries()) std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope() {
    if (!nested_) {
      use_.word->sequence.store(use_.word->sequence.load(std::memory_order_relaxed) + 1,
                                std::memory_order_release);
    }
    if (use_.lock != nullptr) use_.lock->store(0, std::memory_order_release);
  }

 private:
  using Lock = std::atomic<std::uint32_t>;
  struct Use {
    ThreadWord* word;
    Lock* lock;  // taken, if threads share the word
  };
  // By value, so that a scope can live in registers.
  [[gnu::noinline]] static Use find(MemoryPlane& plane) {
    ThreadWord& word = plane.thread_word();
    return {&word, plane.shares(word) ? share(plane) : nullptr};
  }
  static Lock* share(MemoryPlane& plane) {
    Lock& lock = plane.shared_word_lock();
    for (std::uint32_t round = 0; lock.exchange(1, std::memory_order_acquire) != 0; ++round) {
      plane.host().relax(round);
    }
    return &lock;
  }

  Use use_;
  bool nested_ = false;
};

}  // namespace ib::hca
