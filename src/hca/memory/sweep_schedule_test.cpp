// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/sweep_schedule.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using namespace std::chrono_literals;
using Schedule = SweepSchedule;

constexpr Instant kBegin{std::chrono::hours(1)};

TEST(SweepSchedule, WithoutFilesThereIsNoSweep) {
  Schedule schedule;
  EXPECT_EQ(schedule.until(kBegin, 0, true), Schedule::kNever);
  EXPECT_EQ(schedule.many(), Schedule::kFew);
}

TEST(SweepSchedule, TheFirstFileIsNewsAndTheNextFewAreNot) {
  Schedule schedule;
  EXPECT_EQ(schedule.many(), 1u);
  EXPECT_EQ(schedule.until(kBegin, 1, false), Schedule::kFirstPause);
  EXPECT_EQ(schedule.many(), Schedule::kFew);
  EXPECT_EQ(schedule.until(kBegin + 100ms, 2, false), Schedule::kFirstPause - 100ms);
  EXPECT_EQ(schedule.until(kBegin + 2s, 2, false), 0ns);
}

TEST(SweepSchedule, PausesGrowUntilAConnectionEnds) {
  Schedule schedule;
  Instant now = kBegin;
  Duration last = schedule.until(now, 3, false);
  for (int i = 0; i < 20; ++i) {
    now += schedule.until(now, 3, false);
    schedule.swept(now, now, 3);
    const Duration pause = schedule.until(now, 3, false);
    EXPECT_EQ(pause, std::min(2 * last, Schedule::kLongestPause));
    last = pause;
  }
  EXPECT_EQ(last, Schedule::kLongestPause);
  EXPECT_EQ(schedule.until(now, 3, true), Schedule::kFirstPause);
  EXPECT_EQ(schedule.until(now + 100ms, 3, true), Schedule::kFirstPause - 100ms)
      << "one that ends later does not put the sweep off";
}

TEST(SweepSchedule, NothingLeftMeansNoFurtherSweep) {
  Schedule schedule;
  (void)schedule.until(kBegin, 3, false);
  schedule.swept(kBegin, kBegin, 0);
  EXPECT_EQ(schedule.until(kBegin, 0, false), Schedule::kNever);
}

TEST(SweepSchedule, TwiceAsManyFilesAreSweptAtOnce) {
  Schedule schedule;
  (void)schedule.until(kBegin, 1, false);
  EXPECT_GT(schedule.until(kBegin, Schedule::kFew - 1, false), 0ns);
  EXPECT_EQ(schedule.until(kBegin, Schedule::kFew, false), 0ns);
  schedule.swept(kBegin, kBegin, 100);
  EXPECT_EQ(schedule.many(), 200u);
  EXPECT_GT(schedule.until(kBegin, 199, false), 0ns);
  EXPECT_EQ(schedule.until(kBegin, 200, false), 0ns);
}

TEST(SweepSchedule, LongSweepsHaveLongPauses) {
  Schedule schedule;
  (void)schedule.until(kBegin, 3, false);
  const Instant end = kBegin + 1s;
  schedule.swept(kBegin, end, 3);
  EXPECT_EQ(schedule.until(end, 3, true), Schedule::kTimesLonger * 1s);
}

}  // namespace
}  // namespace ib::hca
