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

TEST(CopyTailLast, CopiesLargeBlocksAtEveryAlignmentAndNoByteMore) {
  constexpr std::size_t kRoom = 5000;
  std::vector<std::byte> source(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) source[i] = std::byte(i * 7 % 251);
  for (const std::size_t size : {4095u, 4103u, 4104u, 4105u, 4900u}) {
    for (std::size_t to = 0; to < 70; ++to) {
      const std::size_t from = to % 5 * 13;
      std::vector<std::byte> target(kRoom, std::byte{0xee});
      copy_tail_last(target.data() + to, source.data() + from, size);
      for (std::size_t i = 0; i < kRoom; ++i) {
        const bool inside = i >= to && i < to + size;
        ASSERT_EQ(target[i], inside ? source[i - to + from] : std::byte{0xee})
            << "size " << size << ", to " << to << ", byte " << i;
      }
    }
  }
}

// A program may send to its own memory. (copy_as_dma() for ThreadSanitizer only goes up.)
#if !IB_THREAD_SANITIZER
TEST(CopyTailLast, CopiesBlocksThatOverlap) {
  constexpr std::size_t kSize = 6000;
  for (const std::size_t apart : {1u, 63u, 64u, 4096u, 5991u}) {
    for (const bool is_up : {false, true}) {
      std::vector<std::byte> memory(2 * kSize);
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte(i * 7 % 251);
      const std::vector<std::byte> before = memory;
      const std::size_t from = is_up ? 0 : apart;
      const std::size_t to = is_up ? apart : 0;
      copy_tail_last(memory.data() + to, memory.data() + from, kSize);
      // The last bytes are read after the others were written.
      for (std::size_t i = 0; i + 8 < kSize; ++i) {
        ASSERT_EQ(memory[to + i], before[from + i]) << "apart " << apart << ", byte " << i;
      }
    }
  }
}
#endif

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
