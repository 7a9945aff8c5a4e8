// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requester with a hand-made peer and a clock that stands still: waiting, time limits, and
// memory that is gone. The verbs themselves are in tests/conformance/.
#include "hca/poster/requester.h"

#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

TEST(Requester, ExecutesAWriteBeforeThePostReturns) {
  PairBench b;
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 4096), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_TRUE(b.same(4096));
}

TEST(Requester, ASmallMessageForMemoryThatIsNotMappedRidesInTheCompletion) {
  PairBench b;
  b.receive(9, 100);
  EXPECT_EQ(b.post(WrOpcode::Send, 64), Status::Ok);
  const Cqe* cqe = b.memory.completion(1, 0);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(cqe->wqe, 9u);
  EXPECT_EQ(cqe->inline_length, 64);
  EXPECT_TRUE(std::equal(cqe->payload.begin(), cqe->payload.end(), b.mine.begin()));
  b.receive(10, 100);
  EXPECT_EQ(b.post(WrOpcode::Send, 65), Status::Ok);
  EXPECT_EQ(b.memory.completion(1, 1)->inline_length, 0);
  EXPECT_TRUE(b.same(65));
}

TEST(Requester, RnrTimeLimitIsTheTimerTimesTheRetries) {
  PairBench b;
  b.limits.rnr_retry = 3;
  b.requester->set_limits(b.limits);
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);  // min_rnr_timer 12: 0.64 ms
  EXPECT_EQ(b.peer->waiter.rnr_waiter.load(), 1u) << "asks for a kick: slot + 1";
  const Instant begin = b.host.time;
  b.host.time = begin + std::chrono::microseconds(1919);
  EXPECT_TRUE(b.progress());
  EXPECT_EQ(b.next(), std::nullopt);
  b.host.time = begin + std::chrono::microseconds(1920);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::RnrRetryExcErr);
  EXPECT_EQ(b.own->id.state.load(), QpState::Error);
  EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
  ASSERT_EQ(b.host.traced.size(), 1u);
  EXPECT_EQ(b.host.traced[0].cause, Cause::NoReceive);
}

// Both completion queues of the pair give an event.
void arm_both(PairBench& b) {
  for (const std::uint32_t index : {0u, 1u}) {
    CqEntry& cq = *b.memory.arena().cq(index);
    cq.id.channel = 1;
    cq.arm.used = 1;
    cq.arm.armed = 1;
  }
}

// An adapter has the acknowledgement before an answer of the receiver can come.
TEST(Requester, ItsOwnCompletionAndEventComeBeforeTheEventOfTheReceiver) {
  for (const QpType type : {QpType::Rc, QpType::Uc}) {
    for (const WrOpcode opcode : {WrOpcode::Send, WrOpcode::RdmaWriteWithImm}) {
      PairBench b(Path::ProcessVm, 4096, type);
      arm_both(b);
      b.receive(1, 100);
      b.host.on_notify = [&b] { EXPECT_NE(b.memory.completion(0, 0), nullptr); };
      EXPECT_EQ(b.post(opcode, 8), Status::Ok);
      EXPECT_EQ(b.host.notified, (std::vector<std::uint32_t>{0, 1}));
    }
  }
}

TEST(Requester, AlsoIfItWaited) {
  PairBench b;
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  arm_both(b);
  b.receive(1, 100);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.host.notified, (std::vector<std::uint32_t>{0, 1}));
}

TEST(Requester, TheReceiverGetsTheEventOfAReceiveThatFailed) {
  PairBench b;
  arm_both(b);
  b.receive(1, 4);  // too short
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::RemInvReqErr);
  EXPECT_EQ(b.host.notified, (std::vector<std::uint32_t>{0, 1}));
}

using verbs::EventType;
using verbs::control::EventObject;

std::size_t raised(const PairBench& b, EventObject object, std::uint32_t index, EventType type) {
  return static_cast<std::size_t>(std::ranges::count_if(b.host.raised, [&](const auto& event) {
    return event.object == object && event.index == index && event.type == type;
  }));
}

TEST(Requester, AnOverrunOfItsOwnCompletionQueueBreaksItWithOneEventEach) {
  PairBench b;
  b.memory.arena().cq(0)->id.cqe = 4;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  EXPECT_EQ(b.own->id.state.load(), QpState::Error);
  EXPECT_EQ(raised(b, EventObject::Cq, 0, EventType::CqErr), 1u);
  EXPECT_EQ(raised(b, EventObject::Qp, kMine, EventType::QpFatal), 1u);
  EXPECT_EQ(b.host.raised.size(), 2u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.next(), std::nullopt);
  EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
}

TEST(Requester, AnOverrunAtTheReceiverBreaksThatWithOneEventEach) {
  PairBench b;
  b.memory.arena().cq(1)->id.cqe = 2;
  for (std::uint32_t i = 0; i < 5; ++i) b.receive(i, 100);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.next(), WcStatus::RemOpErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::CqOverflow));
  EXPECT_EQ(b.next(), WcStatus::WrFlushErr);
  EXPECT_EQ(b.peer->id.state.load(), QpState::Error);
  EXPECT_EQ(raised(b, EventObject::Cq, 1, EventType::CqErr), 1u);
  EXPECT_EQ(raised(b, EventObject::Qp, kPeer, EventType::QpFatal), 1u);
  EXPECT_EQ(b.host.raised.size(), 2u);
}

TEST(Requester, AnUnreliableReceiverIsBrokenToo) {
  PairBench b(Path::ProcessVm, 4096, QpType::Uc);
  b.memory.arena().cq(1)->id.cqe = 1;
  for (std::uint32_t i = 0; i < 3; ++i) b.receive(i, 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.peer->id.state.load(), QpState::Error);
  EXPECT_EQ(raised(b, EventObject::Cq, 1, EventType::CqErr), 1u);
  EXPECT_EQ(raised(b, EventObject::Qp, kPeer, EventType::QpFatal), 1u);
}

// A process was stopped with the lock of the completion queue.
TEST(Requester, AnUnreliableMessageIsLostIfTheCompletionQueueStaysLocked) {
  PairBench b(Path::ProcessVm, 4096, QpType::Uc);
  CqEntry& cq = *b.memory.arena().cq(1);
  cq.id.shared_producers = 1;
  cq.producer.lock = lock_owner(5);
  b.receive(1, 100);
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
  EXPECT_TRUE(b.host.raised.empty());
  unlock(cq.producer.lock);
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  EXPECT_NE(b.memory.completion(1, 0), nullptr);
}

// The peer's answer must not overtake the sender's own completion (perftest -e counts on it).
TEST(Requester, AnUnreliableMessageThatWaitedCompletesBeforeItIsDelivered) {
  PairBench b(Path::ProcessVm, 4096, QpType::Uc);
  b.receive(1, 100);
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);  // the first finds its peer
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);  // waits for a receive
  EXPECT_EQ(b.next(), std::nullopt);
  b.memory.arena().cq(1)->id.shared_producers = 1;
  b.memory.arena().cq(1)->producer.lock = lock_owner(1);  // delivery gets no further than this
  b.host.on_relax = [&b, own = false]() mutable {
    if (!own) {
      EXPECT_EQ(b.next(), WcStatus::Success);
    }
    own = true;
    b.memory.arena().cq(1)->producer.lock = 0;
  };
  b.receive(2, 100);
  EXPECT_FALSE(b.progress());
  EXPECT_NE(b.memory.completion(1, 1), nullptr);
  EXPECT_EQ(b.next(), std::nullopt) << "one completion only";
}

TEST(Requester, SevenRnrRetriesMeanForEver) {
  PairBench b;
  EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
  b.host.time += std::chrono::hours(24 * 365);
  EXPECT_TRUE(b.progress());
  EXPECT_EQ(b.next(), std::nullopt);
  b.receive(1, 8);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
}

TEST(Requester, EveryNewWaitHasItsOwnTimeLimit) {
  PairBench b;
  b.limits.rnr_retry = 3;
  b.requester->set_limits(b.limits);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b.post(WrOpcode::Send, 8), Status::Ok);
    b.host.time += std::chrono::microseconds(1900);
    EXPECT_TRUE(b.progress());
    b.receive(1, 8);
    EXPECT_FALSE(b.progress());
    EXPECT_EQ(b.next(), WcStatus::Success);
  }
}

TEST(Requester, APeerThatDoesNotAnswerIsWaitedForAsLongAsTheRetriesLast) {
  PairBench b;
  b.limits.timeout = 10;  // 4.19 ms
  b.limits.retry_count = 2;
  b.requester->set_limits(b.limits);
  b.peer->id.state.store(QpState::Init);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  const Instant begin = b.host.time;
  b.host.time = begin + Duration((4096ll << 10) * 3 - 1);
  EXPECT_TRUE(b.progress());
  b.host.time = begin + Duration((4096ll << 10) * 3);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::RetryExcErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::PeerNotReady));
  EXPECT_EQ(b.next(), WcStatus::WrFlushErr);
  EXPECT_EQ(b.next(), std::nullopt);
}

TEST(Requester, PagesThatMoveHoldARequestUp) {
  PairBench b;
  SharedEnum<KeyState>& state = b.memory.arena().key(3)->id.state;
  state.store(KeyState::Moving);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  b.host.time += std::chrono::hours(1);
  EXPECT_TRUE(b.progress());
  EXPECT_EQ(b.next(), std::nullopt);
  state.store(KeyState::Valid);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_TRUE(b.same(100));
}

TEST(Requester, ALongMessageTakesSeveralCalls) {
  constexpr std::size_t kBytes = (20u << 20) + 7;
  PairBench b(Path::ProcessVm, kBytes);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, kBytes), Status::Ok);
  EXPECT_EQ(b.next(), std::nullopt);
  EXPECT_TRUE(b.same(8u << 20));
  EXPECT_TRUE(b.progress());
  EXPECT_EQ(b.next(), std::nullopt);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_EQ(b.last.byte_len, kBytes);
  EXPECT_TRUE(b.same(kBytes));
}

TEST(Requester, MemoryThatIsNotThereAnyMoreFailsBothEnds) {
  PairBench b;
  b.host.reach.accessible.clear();
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::RemOpErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::MemoryGone));
  EXPECT_EQ(b.peer->id.state.load(), QpState::Error);
  ASSERT_EQ(b.host.raised.size(), 1u);
  EXPECT_EQ(b.host.raised[0].type, verbs::EventType::QpAccessErr);
  EXPECT_EQ(b.host.kicks, (std::vector<std::uint32_t>{1}));
}

TEST(Requester, MemoryOfItsOwnThatIsNotThereAnyMoreIsALocalError) {
  PairBench b;
  b.host.reach.gone = {std::bit_cast<std::uint64_t>(b.mine.data()), 8};
  b.host.reach.accessible.clear();  // process_vm fails alike at either end
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::LocProtErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::LocalMemoryGone));
  EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
  EXPECT_TRUE(b.host.raised.empty());
}

TEST(Requester, AProcessThatIsGoneIsARetryMatter) {
  PairBench b;
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);  // it was there before
  EXPECT_EQ(b.next(), WcStatus::Success);
  b.host.reach.vm = Status::NotFound;
  b.limits.timeout = 8;
  b.limits.retry_count = 1;
  b.requester->set_limits(b.limits);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  EXPECT_EQ(b.next(), std::nullopt);
  b.host.time += std::chrono::milliseconds(10);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::RetryExcErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::PeerProcessGone));
}

TEST(Requester, APollMayNameAnyPosition) {
  PairBench b;
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 8), Status::Ok);
  std::uint64_t wr_id = 0;
  EXPECT_FALSE(b.requester->polled(2, wr_id));
  EXPECT_FALSE(b.requester->polled(~0u, wr_id));
  EXPECT_TRUE(b.requester->polled(1, wr_id));
  EXPECT_EQ(wr_id, 2u);
  EXPECT_FALSE(b.requester->polled(0, wr_id));
  EXPECT_FALSE(b.requester->polled(1, wr_id));
  EXPECT_EQ(b.requester->queued(), 0u);
}

}  // namespace
}  // namespace ib::hca
