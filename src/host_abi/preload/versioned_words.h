// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A few words that one thread at a time changes and any thread reads, as one value, without a lock.
// Not for a signal handler that may interrupt a change: it would wait for itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

template <std::size_t kCount>
class VersionedWords {
 public:
  using Values = std::array<std::uint64_t, kCount>;

  // Of two threads that change it at once, one is the last.
  void store(const Values& values) {
    std::uint32_t before = version_.load(std::memory_order_relaxed) & ~1u;
    while (!version_.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) {
      before &= ~1u;
    }
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kCount; ++i) words_[i].store(values[i], std::memory_order_relaxed);
    version_.store(before + 2, std::memory_order_release);
  }

  Values load() const {
    for (;;) {
      Values values;
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if ((before & 1u) != 0) continue;
      for (std::size_t i = 0; i < kCount; ++i)
        values[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) == before) return values;
    }
  }

  // One word by itself. Relaxed: it stands for nothing else.
  std::uint64_t peek(std::size_t index) const {
    return words_[index].load(std::memory_order_relaxed);
  }

 private:
  // Odd: a change is under way. The words are relaxed, between two looks at it. The fences keep
  // them there: who has read a word of a change reads at least the odd version afterwards.
  std::atomic<std::uint32_t> version_{0};
  std::array<std::atomic<std::uint64_t>, kCount> words_{};
};

}  // namespace ib::host_abi::preload
