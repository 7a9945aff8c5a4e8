// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ib::hca {
namespace {

TEST(CopyTailLast, CopiesEverySizeAtEveryAlignmentAndNoByteMore) {
  for (std::size_t size = 0; size <= 40; ++size) {
    for (std::size_t to = 0; to < 9; ++to) {
      for (std::size_t from = 0; from < 9; ++from) {
        alignas(16) std::byte source[64];
        alignas(16) std::byte target[64];
        for (std::size_t i = 0; i < 64; ++i) source[i] = std::byte(i + 1);
        for (std::byte& b : target) b = std::byte{0xee};
        copy_tail_last(target + to, source + from, size);
        for (std::size_t i = 0; i < 64; ++i) {
          const bool inside = i >= to && i < to + size;
          ASSERT_EQ(target[i], inside ? source[i - to + from] : std::byte{0xee})
              << "size " << size << ", to " << to << ", from " << from << ", byte " << i;
        }
      }
    }
  }
}

TEST(CopyTailLast, CopiesLargeBlocks) {
  std::vector<std::byte> source(100'003);
  std::vector<std::byte> target(100'010);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = std::byte(i * 7);
  copy_tail_last(target.data() + 3, source.data(), source.size());
  EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin() + 3));
  EXPECT_EQ(target.back(), std::byte{0});
}

// A reader that sees the last byte sees all others: RDMA programs poll for it. The head goes by
// memmove while another core may look, on purpose; a race detector can only complain about that.
#if !IB_THREAD_SANITIZER
TEST(CopyTailLast, TheLastByteComesLast) {
  constexpr std::uint32_t kLooks = 200'000;
  for (const std::size_t size : {8u, 16u, 24u, 64u}) {
    alignas(64) static std::atomic<std::uint64_t> words[8];
    for (auto& word : words) word.store(0);
    const std::size_t last = size / 8 - 1;
    std::atomic<std::uint32_t> torn{0};
    std::atomic<bool> done{false};
    std::thread reader([&] {
      for (std::uint32_t looks = 0; looks < kLooks;) {
        const std::uint64_t seen = words[last].load(std::memory_order_acquire);
        std::uint64_t copy[8];
        for (std::size_t i = 0; i < last; ++i) copy[i] = words[i].load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        // The writer may have gone on meanwhile, by single bytes: none may be older.
        const std::uint64_t ahead = words[last].load(std::memory_order_relaxed) - seen + 1;
        if (ahead > 100) continue;
        ++looks;
        for (std::size_t i = 0; i < 8 * last; ++i) {
          const auto byte = static_cast<std::uint8_t>(copy[i / 8] >> i % 8 * 8);
          if (static_cast<std::uint8_t>(byte - seen) > ahead) ++torn;
        }
      }
      done.store(true);
    });
    for (std::uint64_t round = 1; !done.load(std::memory_order_relaxed); ++round) {
      std::uint64_t data[8];
      for (auto& word : data) word = (round & 0xff) * 0x0101'0101'0101'0101;
      data[last] = round;
      copy_tail_last(reinterpret_cast<std::byte*>(words), reinterpret_cast<std::byte*>(data), size);
    }
    reader.join();
    EXPECT_EQ(torn.load(), 0u) << size;
  }
}
#endif

}  // namespace
}  // namespace ib::hca
