// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/verifier.h"

#include "platform/level.h"
#include "platform/virtual_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace ib::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kCreates = 1;
constexpr std::uint32_t kDestroys = 2;

struct Bed {
  explicit Bed(bool faults = false, std::uint64_t seed = 1)
      : verifier(executor, options(faults, seed)) {
    driver.on(Major::DeviceControl) = [](DeviceObject& on, IrpRef irp) {
      auto& bed = on.extension<Bed>();
      ++bed.arrived;
      if (bed.keeps) return bed.kept.park(std::move(irp));
      if (bed.allocates && bed.verifier.fails("room")) {
        return std::move(irp).fail(Status::InsufficientResources, "no room");
      }
      std::move(irp).complete(bed.answer);
    };
    device.set_extension(this);
  }
  VerifierOptions options(bool faults, std::uint64_t seed) {
    VerifierOptions made;
    made.seed = seed;
    made.faults = faults;
    made.may_fail = [](std::uint32_t code) { return code != kDestroys; };
    made.code_name = [](std::uint32_t code) { return code == kDestroys ? "Destroy" : "Make"; };
    made.report = [this](const std::string& line) { lines.push_back(line); };
    return made;
  }
  struct Request {
    Irp irp;
    int done = 0;
  };
  Request& send(std::uint32_t code) {
    const LevelGuard dispatch(Level::Dispatch);
    Request& request = requests.emplace_back();
    request.irp.code = code;
    request.irp.file = &file;
    verifier.send(request.irp.start(
        [](Irp&, void* context) { ++static_cast<Request*>(context)->done; }, &request));
    return request;
  }
  void run() {
    const LevelGuard dispatch(Level::Dispatch);
    executor.advance(std::chrono::milliseconds(1));
  }

  platform::VirtualExecutor executor;
  std::vector<std::string> lines;
  DriverObject driver{"driver"};
  DeviceObject device{driver, "device", DeviceKind::Functional};
  Client client{1, 42, 0, "node"};
  FileObject file{device, 1, client, nullptr};
  Verifier verifier;
  IrpQueue kept;
  int arrived = 0;
  bool keeps = false;
  bool allocates = false;
  Status answer = Status::Ok;
  std::deque<Request> requests;
};

TEST(Verifier, SomeRequestsWaitAndAllAreAnsweredOnce) {
  Bed t;
  int at_once = 0;
  for (int i = 0; i < 100; ++i) at_once += t.send(kCreates).done;
  EXPECT_GT(at_once, 25);
  EXPECT_LT(at_once, 90);
  EXPECT_LT(t.arrived, 100) << "none waited before it was sent";
  EXPECT_GT(t.arrived, at_once) << "no answer waited";
  t.run();
  EXPECT_EQ(t.arrived, 100);
  for (const auto& request : t.requests) EXPECT_EQ(request.done, 1);
  EXPECT_EQ(t.verifier.findings(), 0u);
}

// As kernel clients use it (al/al.cpp): their completion routines run when it releases the answer.
TEST(Verifier, IsADeviceForThoseWhoHaveACompletionRoutine) {
  Bed t;
  int at_once = 0;
  int seen = 0;
  for (int i = 0; i < 100; ++i) {
    const LevelGuard dispatch(Level::Dispatch);
    Bed::Request& request = t.requests.emplace_back();
    request.irp.code = kCreates;
    request.irp.file = &t.file;
    call_driver(
        t.verifier.device(),
        request.irp.start([](Irp&, void* context) { ++static_cast<Bed::Request*>(context)->done; },
                          &request),
        [](IrpRef irp, void* context) {
          ++*static_cast<int*>(context);
          std::move(irp).pass_up();
        },
        &seen);
    at_once += request.done;
  }
  EXPECT_EQ(seen, at_once);
  EXPECT_LT(at_once, 90);
  t.run();
  EXPECT_EQ(t.arrived, 100);
  EXPECT_EQ(seen, 100);
  for (const auto& request : t.requests) EXPECT_EQ(request.done, 1);
}

TEST(Verifier, ASeedRepeatsItsChoices) {
  const auto choices = [](std::uint64_t seed) {
    Bed t(false, seed);
    std::vector<int> at_once;
    for (int i = 0; i < 64; ++i) at_once.push_back(t.send(kCreates).done);
    t.run();
    return at_once;
  };
  EXPECT_EQ(choices(7), choices(7));
  EXPECT_NE(choices(7), choices(8));
}

TEST(Verifier, WhatIsCancelledBeforeItIsSentNeverArrives) {
  Bed t;
  int cancelled = 0;
  for (int i = 0; i < 100; ++i) {
    Bed::Request& request = t.send(kCreates);
    if (request.done != 0) continue;
    request.irp.cancel();
    if (request.irp.status != Status::Cancelled) continue;  // its answer waits: too late
    ++cancelled;
    EXPECT_EQ(request.done, 1);
  }
  t.run();
  EXPECT_GT(cancelled, 5);
  EXPECT_EQ(t.arrived, 100 - cancelled);
  for (const auto& request : t.requests) EXPECT_EQ(request.done, 1);
}

TEST(Verifier, NamesWhatADriverKeeps) {
  Bed t;
  t.keeps = true;
  t.send(kCreates);
  t.run();
  EXPECT_THAT(t.verifier.under_way(),
              ElementsAre("Make of pid 42 to device (driver driver) is not answered"));
  const LevelGuard dispatch(Level::Dispatch);
  t.kept.fail_all(Status::Cancelled, "the test is over");
  t.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(t.verifier.under_way().empty());
}

TEST(Verifier, FindsAnAnswerThatBreaksTheRules) {
  Bed t;
  t.answer = Status::IoError;  // and no reason
  t.send(kCreates);
  t.run();
  EXPECT_EQ(t.verifier.findings(), 1u);
  EXPECT_THAT(t.lines, ElementsAre("finding: Make of pid 42 to device fails without a reason"));
}

TEST(Verifier, EveryStatusOncePerRequestButNotOfThoseThatDestroy) {
  Bed t(true);
  std::map<Status, int> seen;
  for (int i = 0; i < 40; ++i) {
    const Bed::Request& request = t.send(kCreates);
    t.run();
    ++seen[request.irp.status];
    EXPECT_EQ(t.send(kDestroys).irp.reason, "");
    t.run();
  }
  for (const Status status : Verifier::kFaultStatuses) EXPECT_EQ(seen[status], 1);
  EXPECT_EQ(seen[Status::Ok], 35);
  for (const auto& request : t.requests) EXPECT_EQ(request.done, 1);
}

TEST(Verifier, AnAllocationFailsOncePerRequest) {
  Bed t(true);
  t.allocates = true;
  EXPECT_FALSE(t.verifier.fails("room")) << "no request runs";
  Bed::Request& first = t.send(kCreates);
  t.run();
  EXPECT_EQ(first.irp.reason, "no room");
  for (int i = 0; i < 20; ++i) {
    const Bed::Request& next = t.send(kCreates);
    t.run();
    EXPECT_NE(next.irp.reason, "no room");
  }
  EXPECT_THAT(t.lines.front(), HasSubstr("Make: room is made to fail"));
}

TEST(Verifier, WithoutFaultsNothingFails) {
  Bed t;
  t.allocates = true;
  for (int i = 0; i < 50; ++i) t.send(kCreates);
  t.run();
  for (const auto& request : t.requests) EXPECT_EQ(request.irp.status, Status::Ok);
}

}  // namespace
}  // namespace ib::io::test
