// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "platform/brief_polling.h"

#include <gtest/gtest.h>

namespace ib::platform {
namespace {

using namespace std::chrono_literals;

// Returns how many of `waits` poll, if each sleep takes `sleep` and polling always ends like this.
int polls(BriefPolling& polling, int waits, bool hits, Duration sleep) {
  int count = 0;
  for (int i = 0; i < waits; ++i) {
    const bool poll = polling.should_poll();
    if (poll) {
      ++count;
      hits ? polling.hit() : polling.missed();
    }
    if (!poll || !hits) polling.slept(sleep);
  }
  return count;
}

TEST(BriefPolling, NeverPollsIfSleepsAreLong) {
  BriefPolling polling;
  EXPECT_EQ(polls(polling, 1000, true, BriefPolling::kShortSleep + 1ns), 0);
}

TEST(BriefPolling, PollsAfterAShortSleepAsLongAsItHits) {
  BriefPolling polling;
  EXPECT_EQ(polls(polling, 1000, true, BriefPolling::kShortSleep), 999);
}

TEST(BriefPolling, EndsWithTheFirstMissThatIsFollowedByALongSleep) {
  BriefPolling polling;
  polling.slept(1us);
  ASSERT_TRUE(polling.should_poll());
  polling.missed();
  polling.slept(1s);
  EXPECT_EQ(polls(polling, 1000, true, 1s), 0);
}

// 1, 2, 4 ... 128 waits that sleep at once after one miss each, and then 128 again and again.
TEST(BriefPolling, PollsSeldomWhereItNeverHits) {
  BriefPolling polling;
  polling.slept(1us);
  EXPECT_EQ(polls(polling, 255 + 8, false, 1us), 8);
  EXPECT_EQ(polls(polling, 10 * (BriefPolling::kMostSkipped + 1), false, 1us), 10);
}

// Returns how many waits sleep at once after one miss.
int skipped_after_a_miss(BriefPolling& polling) {
  while (!polling.should_poll()) {}
  polling.missed();
  int count = 0;
  while (!polling.should_poll()) ++count;
  return count;
}

TEST(BriefPolling, EachHitHalvesWhatEachMissDoubles) {
  BriefPolling polling;
  polling.slept(1us);
  (void)polls(polling, 1000, false, 1us);
  EXPECT_EQ(skipped_after_a_miss(polling), BriefPolling::kMostSkipped);
  polling.hit();
  polling.hit();
  EXPECT_EQ(skipped_after_a_miss(polling), BriefPolling::kMostSkipped / 2);
  for (int hits = 0; hits < 8; ++hits) polling.hit();
  EXPECT_EQ(skipped_after_a_miss(polling), 1);
}

TEST(BriefPolling, PollsSeldomWhereItSeldomHits) {
  BriefPolling polling;
  polling.slept(1us);
  int count = 0;
  for (int wait = 0; wait < 10000; ++wait) {
    if (!polling.should_poll()) continue;
    ++count % 3 == 0 ? polling.hit() : polling.missed();
  }
  EXPECT_LT(count, 10000 / 64);
}

}  // namespace
}  // namespace ib::platform
