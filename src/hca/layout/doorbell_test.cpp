// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A ring has its effect at any point of the other side's round.
#include "hca/layout/doorbell.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

// One thread answers, and one requests the end at a chosen point of that: when the answering thread
// has just looked for it, during the round, or when it is about to sleep.
enum class Point { AfterTheLook, InTheRound, BeforeTheSleep };

class Doorbell : public ::testing::TestWithParam<Point> {
 protected:
  void reach(Point point) {
    if (point != GetParam() || over) return;
    over = true;
    ring_doorbell(
        slot, 0, [this](Shared32&) { woken = true; }, [](const auto&) { ADD_FAILURE(); });
  }
  // As a futex does.
  void fall_asleep(const Shared32& word, std::uint32_t value) {
    reach(Point::BeforeTheSleep);
    ASSERT_TRUE(word.load() != value || woken) << "it sleeps, and nobody rings any more";
    woken = false;
  }

  ProcessSlot slot;
  bool over = false;
  bool woken = false;
  int rounds = 0;
};

TEST_P(Doorbell, TheEndIsHeard) {
  answer_doorbell(
      slot,
      [this] {
        const bool seen = over;
        reach(Point::AfterTheLook);
        return seen || HasFatalFailure();
      },
      [this] {
        ++rounds;
        reach(Point::InTheRound);
        return kLong;
      },
      [this](Shared32& word, std::uint32_t value, Duration longest) {
        EXPECT_EQ(longest, kLong);
        fall_asleep(word, value);
      });
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(slot.waiting, 0u);
}

INSTANTIATE_TEST_SUITE_P(AtEachPoint, Doorbell,
                         ::testing::Values(Point::AfterTheLook, Point::InTheRound,
                                           Point::BeforeTheSleep));

TEST(DoorbellRounds, FollowAtOnceIfThereIsMoreToDo) {
  ProcessSlot slot;
  int rounds = 0;
  answer_doorbell(
      slot, [&] { return rounds == 3; },
      [&] {
        ++rounds;
        return Duration::zero();
      },
      [](Shared32&, std::uint32_t, Duration) { ADD_FAILURE(); });
  EXPECT_EQ(slot.waiting, 0u);
}

}  // namespace
}  // namespace ib::hca
