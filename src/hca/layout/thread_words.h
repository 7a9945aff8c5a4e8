// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ThreadWords: hands each executing thread of this process its own ThreadWord in device memory.
//
// A thread keeps its word until it ends. When all are taken, further threads share the last one,
// one at a time (OpScope), which is slow and right.
#pragma once

#include "base/assert.h"
#include "hca/layout/layout.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace ib::hca {

class ThreadWords {
 public:
  explicit ThreadWords(ProcessSlot& slot) : state_(std::make_shared<State>(slot)) {}

  // Returns this thread's own word, or nullptr if it has none yet or shares one; then mine().
  ThreadWord* own() const { return last.state == state_.get() ? last.word : nullptr; }
  ThreadWord& mine() {
    ThreadWord* word = own();
    return word != nullptr ? *word : lease();
  }
  // Whether this thread shares its word with others; it then needs shared_lock() around use.
  bool is_shared(const ThreadWord& word) const {
    return &word == &state_->slot.threads[kThreadsPerSlot - 1];
  }
  std::atomic<std::uint32_t>& shared_lock() { return state_->shared_lock; }

 private:
  struct State {
    explicit State(ProcessSlot& s) : slot(s) {}
    ProcessSlot& slot;
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint32_t> shared_lock{0};
  };
  static_assert(kThreadsPerSlot == 64);

  // A copy of this thread's lease of a word, without a destructor and so without a check of whether
  // it was constructed; in the part of thread-local storage that is found without a call.
  struct Last {
    const State* state;
    ThreadWord* word;
  };
  static inline thread_local constinit Last last
      [[gnu::tls_model("initial-exec")]]{nullptr, nullptr};

  ThreadWord& lease() {
    thread_local Lease lease;
    if (lease.state.get() != state_.get()) lease.take(state_);
    IB_ASSERT(lease.word != nullptr);
    if (!is_shared(*lease.word)) last = {state_.get(), lease.word};
    return *lease.word;
  }

  // Keeps the bookkeeping alive, so that a thread may end after the process object is gone.
  struct Lease {
    std::shared_ptr<State> state;
    ThreadWord* word = nullptr;
    std::uint32_t index = 0;
    void take(const std::shared_ptr<State>& from) {
      give_back();
      state = from;
      std::uint64_t taken = state->taken.load(std::memory_order_relaxed);
      do {
        index = taken == ~std::uint64_t{0} >> 1
                    ? kThreadsPerSlot - 1
                    : static_cast<std::uint32_t>(__builtin_ctzll(~taken));
        if (index >= kThreadsPerSlot - 1) {
          index = kThreadsPerSlot - 1;
          break;
        }
      } while (!state->taken.compare_exchange_weak(taken, taken | std::uint64_t{1} << index));
      word = &state->slot.threads[index];
      // Before the word is used: who sees it used sees this too.
      Shared32& used = state->slot.words_used;
      std::uint32_t known = used.load(std::memory_order_relaxed);
      while (known <= index && !used.compare_exchange_weak(known, index + 1)) {}
    }
    void give_back() {
      if (state && index < kThreadsPerSlot - 1)
        state->taken.fetch_and(~(std::uint64_t{1} << index));
      state.reset();
      last = {nullptr, nullptr};
    }
    ~Lease() { give_back(); }
  };

  std::shared_ptr<State> state_;
};

}  // namespace ib::hca
