// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/watched_ranges.h"

#include <gtest/gtest.h>

namespace ib::user {
namespace {

constexpr std::uint32_t kKey = 0x501;
constexpr std::uint32_t kOther = 0x702;

struct WatchedRangesTest : ::testing::Test {
  WatchedRangesTest() {
    for (const std::uint32_t key : {kKey, kOther}) keys.at(hca::key_index(key)).key.store(key);
  }
  bool is_doubtful(std::uint32_t key) const { return keys.find(key)->is_doubtful(); }

  hca::LocalKeys keys;
  WatchedRanges watched;
};

TEST_F(WatchedRangesTest, OnlyWhatAChangeTouchesBecomesDoubtful) {
  (void)watched.add(kKey, 0x1000, 0x2000);
  (void)watched.add(kOther, 0x5000, 0x6000);
  watched.doubt(keys, 0x2000, 0x5000);  // between them
  watched.doubt(keys, 0, 0x1000);
  watched.doubt(keys, 0x6000, ~std::uint64_t{0});
  EXPECT_FALSE(is_doubtful(kKey));
  EXPECT_FALSE(is_doubtful(kOther));
  watched.doubt(keys, 0x1fff, 0x2000);
  EXPECT_TRUE(is_doubtful(kKey));
  EXPECT_FALSE(is_doubtful(kOther));
  watched.doubt(keys, 0, ~std::uint64_t{0});
  EXPECT_TRUE(is_doubtful(kOther));
}

TEST_F(WatchedRangesTest, APlaceIsUsedAgain) {
  const std::uint32_t place = watched.add(kKey, 0x1000, 0x2000);
  watched.remove(place);
  watched.doubt(keys, 0x1000, 0x2000);
  EXPECT_FALSE(is_doubtful(kKey)) << "it is not watched any more";
  EXPECT_EQ(watched.add(kOther, 0x3000, 0x4000), place);
  watched.doubt(keys, 0x1000, 0x2000);
  EXPECT_FALSE(is_doubtful(kOther));
  watched.doubt(keys, 0x3800, 0x3801);
  EXPECT_TRUE(is_doubtful(kOther));
  EXPECT_FALSE(is_doubtful(kKey));
}

TEST_F(WatchedRangesTest, WhatIsEmptyIsNotWatched) {
  EXPECT_EQ(watched.add(kKey, 0x1000, 0x1000), WatchedRanges::kNotWatched);
  watched.remove(WatchedRanges::kNotWatched);
  watched.doubt(keys, 0, ~std::uint64_t{0});
  EXPECT_FALSE(is_doubtful(kKey));
}

// The same index under a new key is another region.
TEST_F(WatchedRangesTest, TheNextRegionOfAnIndexIsNotDoubtful) {
  (void)watched.add(kKey, 0x1000, 0x2000);
  watched.doubt(keys, 0x1000, 0x2000);
  const std::uint32_t next = kKey + 1;
  ASSERT_EQ(hca::key_index(next), hca::key_index(kKey));
  keys.at(hca::key_index(next)).key.store(next);
  EXPECT_FALSE(is_doubtful(next));
}

}  // namespace
}  // namespace ib::user
