// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "platform/yield_gauge.h"

#include <gtest/gtest.h>

namespace ib::platform {
namespace {

using namespace std::chrono_literals;

// A yield that ends at `now`.
void yield(YieldGauge& gauge, Instant now, Duration time) {
  gauge.yielded(now - time, now);
}

constexpr Duration kShort = YieldGauge::kLongYield;
constexpr Duration kLong = YieldGauge::kLongYield + 1ns;

TEST(YieldGauge, ShortYieldsGoOn) {
  YieldGauge gauge;
  const Instant now{1h};
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(gauge.may_yield(now));
    yield(gauge, now, kShort);
  }
}

TEST(YieldGauge, ALongYieldIsTheLastForAWhile) {
  YieldGauge gauge;
  const Instant now{1h};
  yield(gauge, now, kLong);
  EXPECT_FALSE(gauge.may_yield(now));
  EXPECT_FALSE(gauge.may_yield(now + YieldGauge::kShortestPause - 1ns));
  EXPECT_TRUE(gauge.may_yield(now + YieldGauge::kShortestPause));
}

TEST(YieldGauge, PausesDoubleUpToTheLongest) {
  YieldGauge gauge;
  Instant now{1h};
  Duration pause = YieldGauge::kShortestPause;
  for (int i = 0; i < 10; ++i) {
    yield(gauge, now, kLong);
    EXPECT_FALSE(gauge.may_yield(now + pause - 1ns));
    EXPECT_TRUE(gauge.may_yield(now + pause));
    now += pause;
    pause = std::min(2 * pause, YieldGauge::kLongestPause);
  }
  EXPECT_EQ(pause, YieldGauge::kLongestPause);
}

TEST(YieldGauge, AShortYieldEndsThePauses) {
  YieldGauge gauge;
  Instant now{1h};
  yield(gauge, now, kLong);
  now += YieldGauge::kShortestPause;
  yield(gauge, now, kLong);
  now += 2 * YieldGauge::kShortestPause;
  yield(gauge, now, kShort);
  EXPECT_TRUE(gauge.may_yield(now));
  yield(gauge, now, kLong);
  EXPECT_TRUE(gauge.may_yield(now + YieldGauge::kShortestPause));
}

}  // namespace
}  // namespace ib::platform
