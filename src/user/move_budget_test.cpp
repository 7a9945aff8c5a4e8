// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/move_budget.h"

#include <gtest/gtest.h>

namespace ib::user {
namespace {

using namespace std::chrono_literals;
using Budget = MoveBudget;

constexpr Instant kBegin{std::chrono::hours(1)};
constexpr std::uint64_t kFull = Budget::kMost - Budget::kPerRegion;

TEST(MoveBudget, IsFullAtTheBeginningAndNeverFuller) {
  Budget budget;
  EXPECT_EQ(budget.left(kBegin), kFull);
  EXPECT_EQ(budget.left(kBegin + 24h), kFull);
}

TEST(MoveBudget, WhatIsSpentIsEarnedAgainWithTime) {
  Budget budget;
  (void)budget.left(kBegin);
  budget.spend(40u << 20);
  const std::uint64_t left = kFull - (40u << 20) - Budget::kPerRegion;
  EXPECT_EQ(budget.left(kBegin), left);
  EXPECT_EQ(budget.left(kBegin + 1s), left + Budget::kPerSecond);
  EXPECT_EQ(budget.left(kBegin + 1s), left + Budget::kPerSecond) << "a second counts once";
  EXPECT_EQ(budget.left(kBegin), left + Budget::kPerSecond) << "time does not go back";
  EXPECT_EQ(budget.left(kBegin + 3s), left + 3 * Budget::kPerSecond);
}

TEST(MoveBudget, ARegionCostsSomethingHoweverSmallItIs) {
  Budget budget;
  (void)budget.left(kBegin);
  std::uint64_t regions = 0;
  for (; budget.left(kBegin) != 0 && regions < 10'000; ++regions) budget.spend(0);
  // The last is refused: it would get the room for its own cost and nothing to move.
  EXPECT_EQ(regions, Budget::kMost / Budget::kPerRegion - 1);
}

TEST(MoveBudget, MoreThanThereIsLeavesNothing) {
  Budget budget;
  (void)budget.left(kBegin);
  budget.spend(10 * Budget::kMost);
  EXPECT_EQ(budget.left(kBegin), 0u);
  EXPECT_EQ(budget.left(kBegin + 1s), Budget::kPerSecond - Budget::kPerRegion);
}

// A program that registers all the time queries far more often than once a microsecond's worth.
TEST(MoveBudget, ShortTimesAddUp) {
  Budget budget;
  (void)budget.left(kBegin);
  budget.spend(Budget::kMost);
  for (auto past = 0ns; past < 1s; past += 50us) (void)budget.left(kBegin + past);
  const std::uint64_t slow = Budget::kPerSecond - Budget::kPerRegion;
  // Each look may lose less than a byte.
  EXPECT_NEAR(static_cast<double>(budget.left(kBegin + 1s)), static_cast<double>(slow), 20'000.0);
  Budget quick;
  (void)quick.left(kBegin);
  quick.spend(Budget::kMost);
  for (auto past = 0ns; past < 20ms; past += 500ns) (void)quick.left(kBegin + past);
  EXPECT_NEAR(static_cast<double>(quick.left(kBegin + 20ms)),
              static_cast<double>(Budget::kPerSecond) / 50 - Budget::kPerRegion, 20'000.0);
}

}  // namespace
}  // namespace ib::user
