// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/memory/heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace ib::drivers {
namespace {

constexpr std::uint64_t kStart = 4096;
constexpr std::uint64_t kSpace = 8 << 20;
constexpr std::uint64_t kStep = 1 << 20;

class Memory final : public HeapMemory {
 public:
  Status grow_to(std::uint64_t end, std::string& reason) override {
    if (!may_grow) {
      reason = "ftruncate: No space left on device";
      return Status::IoError;
    }
    bytes.resize(static_cast<std::size_t>(end));
    return Status::Ok;
  }
  void clear(std::uint64_t offset, std::uint64_t length) override {
    std::memset(bytes.data() + offset, 0, static_cast<std::size_t>(length));
  }
  void give_back(std::uint64_t offset, std::uint64_t length) override {
    clear(offset, length);
    given_back += length;
  }
  std::vector<unsigned char> bytes;
  std::uint64_t given_back = 0;
  bool may_grow = true;
};

TEST(Heap, GrowsInStepsAndStopsAtTheLimit) {
  Memory memory;
  Heap heap(memory, kStart, kSpace, kStep, 3 << 20);
  std::string reason;
  EXPECT_EQ(*heap.allocate(100, 64, reason), kStart);
  EXPECT_EQ(memory.bytes.size(), kStart + kStep);
  EXPECT_EQ(heap.used(), 128u);
  EXPECT_TRUE(heap.allocate(2 << 20, 64, reason));
  EXPECT_EQ(heap.allocate(1 << 20, 64, reason).error(), Status::InsufficientResources);
  EXPECT_NE(reason.find("device memory is full: "), std::string::npos) << reason;
}

TEST(Heap, WhatTheSystemRefusesIsReported) {
  Memory memory;
  memory.may_grow = false;
  Heap heap(memory, kStart, kSpace, kStep, 0);
  std::string reason;
  EXPECT_EQ(heap.allocate(100, 64, reason).error(), Status::IoError);
  EXPECT_EQ(reason, "ftruncate: No space left on device");
  EXPECT_EQ(heap.used(), 0u);
}

TEST(Heap, BigPiecesAreGivenBackAndAbsurdOnesRefused) {
  Memory memory;
  Heap heap(memory, kStart, kSpace, kStep, 0);
  std::string reason;
  const std::uint64_t big = *heap.allocate(300000, 64, reason);
  EXPECT_EQ(big % Heap::kPage, 0u);
  heap.release(big);
  EXPECT_GE(memory.given_back, 300000u);
  EXPECT_EQ(heap.pieces(), 0u);
  EXPECT_EQ(heap.allocate(~std::uint64_t{0}, 64, reason).error(), Status::InsufficientResources);
  EXPECT_EQ(heap.allocate(1, std::uint64_t{1} << 40, reason).error(),
            Status::InsufficientResources);
}

TEST(Heap, NeighboursMergeSoThatEverythingFitsAgain) {
  Memory memory;
  Heap heap(memory, kStart, kStart + kStep, kStep, 0);
  std::string reason;
  std::vector<std::uint64_t> pieces;
  while (const auto piece = heap.allocate(4096, 64, reason)) pieces.push_back(*piece);
  EXPECT_EQ(pieces.size(), 256u);
  for (std::size_t i = 0; i < pieces.size(); i += 2) heap.release(pieces[i]);
  for (std::size_t i = 1; i < pieces.size(); i += 2) heap.release(pieces[i]);
  EXPECT_TRUE(heap.allocate(256 * 4096, 64, reason)) << reason;
}

// Pieces never overlap, are aligned, inside the file and zeros, whatever was in them before.
TEST(HeapProperty, PiecesAreDisjointAlignedAndZero) {
  const std::vector<unsigned char> zeros(200000);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Memory memory;
    Heap heap(memory, kStart, kSpace, kStep, 0);
    std::string reason;
    std::map<std::uint64_t, std::uint64_t> pieces;
    for (int i = 0; i < 500; ++i) {
      if (!pieces.empty() && random() % 3 == 0) {
        auto it = std::next(pieces.begin(), static_cast<long>(random() % pieces.size()));
        heap.release(it->first);
        pieces.erase(it);
        continue;
      }
      const std::uint64_t size = 1 + random() % (random() % 10 == 0 ? 200000 : 3000);
      const std::uint64_t align = std::uint64_t{1} << (random() % 14);
      const auto piece = heap.allocate(size, align, reason);
      if (!piece) continue;
      ASSERT_EQ(*piece % std::max(align, Heap::kGranule), 0u);
      ASSERT_LE(*piece + size, memory.bytes.size());
      const auto next = pieces.lower_bound(*piece);
      if (next != pieces.end()) {
        ASSERT_LE(*piece + size, next->first);
      }
      if (next != pieces.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *piece);
      }
      ASSERT_EQ(std::memcmp(&memory.bytes[*piece], zeros.data(), size), 0);
      std::memset(memory.bytes.data() + *piece, 0xa5, size);
      pieces.emplace(*piece, size);
    }
    for (const auto& [offset, size] : pieces) heap.release(offset);
    EXPECT_EQ(heap.used(), 0u);
  }
}

}  // namespace
}  // namespace ib::drivers
