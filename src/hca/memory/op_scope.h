// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OpScope: "this thread is executing a work request", stored in its own ThreadWord.
#pragma once

#include "hca/memory/memory_plane.h"

namespace ib::hca {

class OpScope {
 public:
  // `what`: what the thread may touch meanwhile (executing in layout.h).
  explicit OpScope(MemoryPlane& plane, std::uint64_t what = executing::kAnything)
      : use_{plane.thread_words().own(), nullptr} {
    if (use_.word == nullptr) [[unlikely]]
      use_ = find(plane);
    // Relaxed: this thread's own word.
    const std::uint64_t before = use_.word->sequence.load(std::memory_order_relaxed);
    nested_ = (before & 1) != 0;
    if (nested_) {
      widen(plane, before, what);
      return;
    }
    // Release: a waiter that finds this scope takes the one before for ended, with all its loads.
    use_.word->sequence.store((before + 1) | what, std::memory_order_release);
    pass_barrier(plane);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope() {
    if (!nested_) {
      // Release: what this scope has read and written comes before a waiter goes on.
      const std::uint64_t count =
          use_.word->sequence.load(std::memory_order_relaxed) & executing::kCount;
      use_.word->sequence.store(count + 1, std::memory_order_release);
    }
    if (use_.lock != nullptr) [[unlikely]] {
      shared_by_this_thread = nullptr;
      use_.lock->store(0, std::memory_order_release);
    }
  }

 private:
  using Lock = std::atomic<std::uint32_t>;
  struct Use {
    ThreadWord* word;
    Lock* lock;  // taken, if threads share the word
  };
  static void pass_barrier(const MemoryPlane& plane) {
    platform::light_barrier();  // pairs with that of Quiescence
    if (plane.fenced_entries()) std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // In a scope inside another one the thread may touch what either may touch. The count stays: a
  // waiter that has seen the outer scope goes on waiting for its end.
  void widen(const MemoryPlane& plane, std::uint64_t before, std::uint64_t what) {
    const std::uint64_t outer = before & ~executing::kCount;
    if (what == executing::kOwn || what == outer || outer == executing::kAnything) return;
    use_.word->sequence.store((before & executing::kCount) | executing::kAnything,
                              std::memory_order_release);
    pass_barrier(plane);
  }
  // By value, so that a scope can live in registers.
  [[gnu::noinline]] static Use find(MemoryPlane& plane) {
    ThreadWord& word = plane.thread_words().mine();
    return {&word, plane.thread_words().is_shared(word) ? share(plane) : nullptr};
  }
  // Returns nullptr if the scope around this one has taken the lock.
  static Lock* share(MemoryPlane& plane) {
    Lock& lock = plane.thread_words().shared_lock();
    if (shared_by_this_thread == &lock) return nullptr;
    for (std::uint32_t round = 0; lock.exchange(1, std::memory_order_acquire) != 0; ++round) {
      plane.host().relax(round);
    }
    shared_by_this_thread = &lock;
    return &lock;
  }

  static inline thread_local constinit const Lock* shared_by_this_thread
      [[gnu::tls_model("initial-exec")]]{nullptr};

  Use use_;
  bool nested_ = false;
};

}  // namespace ib::hca
