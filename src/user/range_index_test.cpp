// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/range_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace ib::user {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};

TEST(RangeIndex, RangesThatTouchDoNotOverlap) {
  RangeIndex index;
  index.add(0x1000, 0x3000);
  EXPECT_FALSE(index.overlaps(0, 0x1000));
  EXPECT_FALSE(index.overlaps(0x3000, kEnd));
  EXPECT_TRUE(index.overlaps(0xfff, 0x1001));
  EXPECT_TRUE(index.overlaps(0x2fff, 0x3000));
  EXPECT_TRUE(index.overlaps(0, kEnd));
}

TEST(RangeIndex, EmptyRangesOverlapNothing) {
  RangeIndex index;
  index.add(0x1000, 0x1000);
  EXPECT_FALSE(index.overlaps(0, kEnd));
  index.add(0, kEnd);
  EXPECT_FALSE(index.overlaps(0x1000, 0x1000));
  index.remove(0x1000, 0x1000);
  index.remove(0, kEnd);
  EXPECT_FALSE(index.overlaps(0, kEnd));
}

TEST(RangeIndex, EachOfEqualRangesIsRemovedAlone) {
  RangeIndex index;
  for (int i = 0; i < 3; ++i) index.add(0x1000, 0x2000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(index.overlaps(0x1000, 0x1001));
    index.remove(0x1000, 0x2000);
  }
  EXPECT_FALSE(index.overlaps(0x1000, 0x1001));
}

TEST(RangeIndex, AgreesWithAListOfRanges) {
  constexpr unsigned kSeed = 34;
  std::mt19937_64 random(kSeed);
  const auto range = [&random] {
    const std::uint64_t start = random() % 4096;
    const std::uint64_t length = random() % (std::uint64_t{1} << random() % 12);
    return std::pair{start, start + length};
  };
  RangeIndex index;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> list;
  for (int round = 0; round < 20'000; ++round) {
    if (list.size() > random() % 12) {
      const std::size_t which = random() % list.size();
      index.remove(list[which].first, list[which].second);
      list[which] = list.back();
      list.pop_back();
    } else {
      list.push_back(range());
      index.add(list.back().first, list.back().second);
    }
    const auto [start, end] = range();
    const bool expected =
        start < end && std::any_of(list.begin(), list.end(), [start = start, end = end](auto& r) {
          return r.first < r.second && r.first < end && r.second > start;
        });
    ASSERT_EQ(index.overlaps(start, end), expected)
        << "seed " << kSeed << ", round " << round << ": " << start << " to " << end;
  }
}

}  // namespace
}  // namespace ib::user
