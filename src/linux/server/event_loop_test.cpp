// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/event_loop.h"

#include "platform/level.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace ib::os {
namespace {

using namespace std::chrono_literals;

TEST(EventLoop, RunsPostedWorkInOrderAtDispatchLevelOnItsThread) {
  EventLoop loop;
  std::string order;
  std::thread poster([&] {
    loop.post([&] {
      order += 'a';
      EXPECT_EQ(current_level(), Level::Dispatch);
      EXPECT_TRUE(loop.runs_here());
      loop.post([&] {
        order += 'c';
        loop.stop();
      });
    });
    loop.post([&] { order += 'b'; });
    EXPECT_FALSE(loop.runs_here());
  });
  poster.join();
  loop.run();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(current_level(), Level::Passive);
}

TEST(EventLoop, CanRunAgainAfterStop) {
  EventLoop loop;
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    loop.post([&] {
      ++runs;
      loop.stop();
    });
    loop.run();
  }
  EXPECT_EQ(runs, 3);
}

TEST(EventLoop, WorkThatPostsWithoutEndHoldsUpNobody) {
  EventLoop loop;
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    loop.post(again);
  };
  loop.post(again);
  std::unique_ptr<platform::Timer> timer;
  std::function<void()> tick = [&] {
    if (rounds > 10) return loop.stop();
    timer = loop.at(loop.now() + std::chrono::milliseconds(1), tick);
  };
  timer = loop.at(loop.now() + std::chrono::milliseconds(1), tick);
  loop.run();
  EXPECT_GT(rounds, 10);
}

// Late work waits for a time that a busy machine may take between two pieces of work.
TEST(EventLoop, LateWorkRunsAfterOtherWorkThatComesMeanwhile) {
  constexpr int kTries = 1000;
  std::string order;
  for (int i = 0; i < kTries && order != "first second late "; ++i) {
    order.clear();
    EventLoop loop;
    loop.post([&] {
      loop.post_late([&] {
        order += "late ";
        loop.stop();
      });
      loop.post([&] {
        order += "first ";
        loop.post([&] { order += "second "; });
      });
    });
    loop.run();
  }
  EXPECT_EQ(order, "first second late ");
}

TEST(EventLoop, LateWorkRunsThoughOtherWorkHasNoEnd) {
  EventLoop loop;
  std::function<void()> again = [&] { loop.post(again); };
  loop.post([&] {
    loop.post_late([&] { loop.stop(); });
    again();
  });
  loop.run();
}

// One whose time is over is due "soon": on a busy machine the others may be due by then, too.
TEST(EventLoop, TimersExpireInTheOrderOfTheirTimesAndNotBefore) {
  EventLoop loop;
  std::string order;
  const Instant start = loop.now();
  const auto note = [&](char which) {
    order += which;
    if (order.size() == 3) loop.stop();
  };
  auto late = loop.at(start + 5ms, [&] {
    EXPECT_GE(loop.now(), start + 5ms);
    note('l');
  });
  auto early = loop.at(start + 2ms, [&] {
    EXPECT_GE(loop.now(), start + 2ms);
    note('e');
  });
  auto past = loop.at(start - 1s, [&] { note('p'); });
  loop.run();
  EXPECT_LT(order.find('e'), order.find('l')) << order;
  EXPECT_NE(order.find('p'), std::string::npos) << order;
}

TEST(EventLoop, ADestroyedTimerDoesNotExpire) {
  EventLoop loop;
  bool destroyed = false;
  bool expired = false;
  // On a busy machine it may be due before the other one has run.
  auto doomed = loop.at(loop.now() + 1ms, [&] { expired |= destroyed; });
  std::unique_ptr<platform::Timer> second;
  auto first = loop.at(loop.now() - 2ms, [&] {
    doomed.reset();
    second.reset();
    destroyed = true;
  });
  // Due in the same turn as the one that destroys it.
  second = loop.at(loop.now() - 1ms, [&] { expired = true; });
  auto end = loop.at(loop.now() + 3ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(expired);
}

TEST(EventLoop, ATimerMayDestroyItselfAndBeReplacedWhileItRuns) {
  EventLoop loop;
  int count = 0;
  std::unique_ptr<platform::Timer> timer;
  std::function<void()> tick = [&] {
    const auto local = std::make_shared<int>(7);  // captured state must survive the reset
    timer.reset();
    EXPECT_EQ(*local, 7);
    if (++count == 3) return loop.stop();
    timer = loop.at(loop.now(), tick);
  };
  timer = loop.at(loop.now(), tick);
  loop.run();
  EXPECT_EQ(count, 3);
}

TEST(EventLoop, WorkThatDidNotRunIsDropped) {
  const auto alive = std::make_shared<int>(0);
  {
    EventLoop loop;
    loop.post([alive] { FAIL(); });
    auto timer = loop.at(loop.now(), [alive] { FAIL(); });
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(EventLoop, UsesNoProcessorWhileNothingHappens) {
  EventLoop loop;
  auto end = loop.at(loop.now() + 100ms, [&] { loop.stop(); });
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  loop.run();
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 3);
}

TEST(EventLoop, TellsOfSignals) {
  EventLoop loop;
  int seen = 0;
  loop.on_signals({SIGUSR1}, [&](int signal) {
    seen += signal;
    if (seen == 2 * SIGUSR1) return loop.stop();
    loop.post([] { std::raise(SIGUSR1); });
  });
  loop.post([] { std::raise(SIGUSR1); });
  loop.run();
  EXPECT_EQ(seen, 2 * SIGUSR1);
}

}  // namespace
}  // namespace ib::os
