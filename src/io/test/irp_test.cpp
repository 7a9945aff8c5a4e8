// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/irp.h"

#include "io/irp_queue.h"
#include "io/wait.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace ib::io {
namespace {

struct Done {
  int count = 0;
  Status status = Status::Pending;
  std::uint64_t information = 0;
  std::string reason;
  static void note(Irp& irp, void* context) {
    auto& self = *static_cast<Done*>(context);
    ++self.count;
    self.status = irp.status;
    self.information = irp.information;
    self.reason = irp.reason;
  }
};

TEST(Irp, ResultReachesTheOriginatorOnceAndTheIrpCanBeUsedAgain) {
  Irp irp;
  Done done;
  irp.start(&Done::note, &done).complete(Status::Ok, 7);
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.information, 7u);
  irp.start(&Done::note, &done).fail(Status::NotFound, "no such thing");
  EXPECT_EQ(done.count, 2);
  EXPECT_EQ(done.status, Status::NotFound);
  EXPECT_EQ(done.information, 0u);
  EXPECT_EQ(done.reason, "no such thing");
  irp.start(&Done::note, &done).complete(Status::Ok);
  EXPECT_EQ(done.reason, "");
}

TEST(Irp, FailureDropsTheOutputThatWasBegun) {
  Irp irp;
  Done done;
  std::uint32_t out = 0;
  irp.out = std::as_writable_bytes(std::span(&out, 1));
  IrpRef ref = irp.start(&Done::note, &done);
  EXPECT_TRUE(ref->set_output(std::uint32_t{5}));
  std::move(ref).fail(Status::IoError, "disk on fire");
  EXPECT_EQ(irp.out_size, 0u);
}

TEST(Irp, InputMustHaveExactlyTheSizeOfTheStructure) {
  Irp irp;
  const std::array<std::byte, 5> bytes{std::byte{0}, std::byte{1}};
  irp.in = std::span(bytes).first(4);
  EXPECT_TRUE(irp.input<std::uint32_t>().has_value());
  irp.in = bytes;
  EXPECT_FALSE(irp.input<std::uint32_t>().has_value());
  irp.in = std::span(bytes).subspan(1, 4);  // unaligned
  EXPECT_TRUE(irp.input<std::uint32_t>().has_value());
  irp.in = {};
  EXPECT_FALSE(irp.input<std::uint32_t>().has_value());
}

TEST(Irp, OutputThatDoesNotFitIsRefused) {
  Irp irp;
  std::uint32_t small = 0;
  irp.out = std::as_writable_bytes(std::span(&small, 1));
  EXPECT_FALSE(irp.set_output(std::uint64_t{1}));
  EXPECT_EQ(irp.out_size, 0u);
  EXPECT_EQ(small, 0u);
}

TEST(IrpDeathTest, DroppingARequestIsABug) {
  EXPECT_DEATH(
      {
        Irp irp;
        Done done;
        IrpRef ref = irp.start(&Done::note, &done);
      },
      "irp_ == nullptr");
}

TEST(IrpDeathTest, AnIrpMayNotBeFreedOrStartedWhileItIsInFlight) {
  EXPECT_DEATH(
      {
        Done done;
        IrpQueue queue;
        Irp irp;
        queue.park(irp.start(&Done::note, &done));
      },
      "in_flight_");
  EXPECT_DEATH(
      {
        Done done;
        Irp irp;
        IrpRef ref = irp.start(&Done::note, &done);
        std::move(irp.start(&Done::note, &done)).complete(Status::Ok);
      },
      "in_flight_");
}

TEST(IrpQueue, IsFirstInFirstOutAndAnyRequestCanBeTaken) {
  std::array<Irp, 4> irps;
  Done done;
  IrpQueue queue;
  for (Irp& irp : irps) queue.park(irp.start(&Done::note, &done));
  EXPECT_EQ(queue.size(), 4u);
  auto third = queue.take(irps[2]);
  ASSERT_TRUE(third);
  EXPECT_FALSE(queue.take(irps[2]));
  for (const std::size_t index : {0u, 1u, 3u}) {
    auto irp = queue.take();
    ASSERT_TRUE(irp);
    EXPECT_EQ(&**irp, &irps[index]);
    (*std::move(irp)).complete(Status::Ok);
  }
  EXPECT_FALSE(queue.take());
  (*std::move(third)).complete(Status::Ok);
  EXPECT_EQ(done.count, 4);
}

TEST(IrpQueue, LastTakenFromTheMiddleLeavesAWorkingQueue) {
  std::array<Irp, 2> irps;
  Done done;
  IrpQueue queue;
  queue.park(irps[0].start(&Done::note, &done));
  queue.park(irps[1].start(&Done::note, &done));
  EXPECT_TRUE(queue.cancel(irps[1]));
  queue.park(irps[1].start(&Done::note, &done));
  queue.fail_all(Status::DeviceRemoved, "gone");
  EXPECT_EQ(done.count, 3);
  EXPECT_EQ(done.status, Status::DeviceRemoved);
  EXPECT_EQ(done.reason, "gone");
}

TEST(IrpCancel, BeforeParkingCompletesAtTheMomentOfParking) {
  Irp irp;
  Done done;
  IrpQueue queue;
  IrpRef ref = irp.start(&Done::note, &done);
  irp.cancel();
  EXPECT_TRUE(irp.is_cancelled());
  EXPECT_EQ(done.count, 0);  // its owner decides
  queue.park(std::move(ref));
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.status, Status::Cancelled);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(IrpCancel, WhileParkedCompletesAtOnce) {
  Irp irp;
  Done done;
  IrpQueue queue;
  queue.park(irp.start(&Done::note, &done));
  irp.cancel();
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.status, Status::Cancelled);
}

TEST(IrpCancel, AfterTakingOrCompletionDoesNothing) {
  Irp irp;
  Done done;
  IrpQueue queue;
  queue.park(irp.start(&Done::note, &done));
  auto taken = queue.take();
  ASSERT_TRUE(taken);
  irp.cancel();
  EXPECT_EQ(done.count, 0);
  (*std::move(taken)).complete(Status::Ok);
  EXPECT_EQ(done.status, Status::Ok);
  irp.cancel();
  EXPECT_EQ(done.count, 1);
}

TEST(IrpCancel, NothingIsCompletedUnderTheLockOfTheQueue) {
  Irp irp;
  IrpQueue queue;
  // Would deadlock if the lock were held.
  auto look = [](Irp&, void* context) { EXPECT_EQ(static_cast<IrpQueue*>(context)->size(), 0u); };
  queue.park(irp.start(look, &queue));
  irp.cancel();
  queue.park(irp.start(look, &queue));
  queue.fail_all(Status::Cancelled, "test");
  IrpRef ref = irp.start(look, &queue);
  irp.cancel();
  queue.park(std::move(ref));
}

// Two threads: one parks and takes, one cancels, at every point of a request's life.
TEST(IrpCancel, EveryRequestIsCompletedOnceWhenParkTakeAndCancelRace) {
  static constexpr int kRequests = 64;
  auto count = [](Irp&, void* context) { ++*static_cast<std::atomic<int>*>(context); };
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> completed = 0;
    std::array<Irp, kRequests> irps;
    IrpQueue first;
    IrpQueue second;
    std::vector<IrpRef> refs;
    for (Irp& irp : irps) refs.push_back(irp.start(count, &completed));
    std::thread canceller([&] {
      for (Irp& irp : irps) irp.cancel();
    });
    for (IrpRef& ref : refs) {
      first.park(std::move(ref));
      // Half of them move on to another queue.
      if (auto irp = first.take()) second.park(*std::move(irp));
      if (auto irp = second.take()) (*std::move(irp)).complete(Status::Ok);
    }
    canceller.join();
    first.fail_all(Status::Cancelled, "end");
    second.fail_all(Status::Cancelled, "end");
    EXPECT_EQ(completed, kRequests);
  }
}

TEST(IrpWait, WaitsForACompletionOnAnotherThread) {
  for (int round = 0; round < 100; ++round) {
    Irp irp;
    IrpWait wait;
    IrpQueue queue;
    queue.park(wait.start(irp));
    std::thread worker([&] { (*queue.take()).fail(Status::Timeout, "late"); });
    EXPECT_EQ(wait.wait(), Status::Timeout);
    worker.join();
  }
}

TEST(IrpWaitDeathTest, IsForPassiveLevelOnly) {
  Irp irp;
  IrpWait wait;
  wait.start(irp).complete(Status::Ok);
  EXPECT_DEATH(
      {
        LevelGuard guard(Level::Dispatch);
        (void)wait.wait();
      },
      "IrpWait.*dispatch level");
  EXPECT_EQ(wait.wait(), Status::Ok);
}

TEST(Level, IsRaisedForAScopeAndNeverLowered) {
  EXPECT_EQ(current_level(), Level::Passive);
  {
    LevelGuard outer(Level::Dispatch);
    LevelGuard inner(Level::Passive);
    EXPECT_EQ(current_level(), Level::Dispatch);
    std::thread([] { EXPECT_EQ(current_level(), Level::Passive); }).join();
  }
  EXPECT_EQ(current_level(), Level::Passive);
}

}  // namespace
}  // namespace ib::io
