// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requester with a hand-made peer and a clock that stands still: waiting, time limits, and the
// three paths into another process. The verbs themselves are in tests/conformance/.
#include "hca/requester/requester.h"

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
  b.host.accessible.clear();
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
  b.host.gone = {std::bit_cast<std::uint64_t>(b.mine.data()), 8};
  b.host.accessible.clear();  // process_vm fails alike at either end
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
  b.host.vm = Status::NotFound;
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

// --- Bounces ---

// The peer's service thread: looks at its entries whenever the requester waits.
struct BounceBench : PairBench {
  explicit BounceBench(std::size_t bytes = 100'000) : PairBench(Path::Bounce, bytes) {
    BenchArena::cache_key(peer_plane, kRkey, theirs.data(), theirs.size());
  }
  void serve() {
    for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
      BounceEntry* entry = memory.arena().bounce(1, i);
      if (entry->request.state.load() == BounceState::Submitted) {
        peer_plane.serve_bounce(*entry);
        ++served;
      }
    }
  }
  MemoryPlane peer_plane{memory.arena(), host, 1, Path::Bounce};
  std::uint32_t served = 0;
};

TEST(Bounce, MovesAnyNumberOfBytesThroughItsBuffers) {
  BounceBench b;
  b.host.on_relax = [&b] { b.serve(); };
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100'000), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_TRUE(b.same(100'000));
  EXPECT_EQ(b.served, 4u);
  std::fill(b.mine.begin(), b.mine.end(), std::byte{0});
  EXPECT_EQ(b.post(WrOpcode::RdmaRead, 100'000), Status::Ok);
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_TRUE(b.same(100'000));
  for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
    EXPECT_EQ(b.memory.arena().bounce(1, i)->request.state.load(), BounceState::Free)
        << "left behind";
  }
}

TEST(Bounce, IsTakenWhenProcessVmIsForbidden) {
  BounceBench b;
  MemoryPlane plane(b.memory.arena(), b.host, 0, Path::ProcessVm);
  b.host.vm = Status::AccessDenied;
  b.host.on_relax = [&b] { b.serve(); };
  Stretch to;
  to.kind = Stretch::Kind::Remote;
  to.slot = 1;
  to.key = kRkey;
  to.address = std::bit_cast<std::uint64_t>(b.theirs.data());
  to.length = 500;
  LocalPieces pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.write(pieces, 0, to, 0, 500).ok());
  EXPECT_TRUE(b.same(500));
}

// Another process may have that id: of another pid namespace, or after the end of this one.
TEST(Bounce, IsTakenWhenTheProcessOfThatIdIsAnother) {
  BounceBench b;
  MemoryPlane plane(b.memory.arena(), b.host, 0, Path::ProcessVm);
  b.host.on_relax = [&b] { b.serve(); };
  Stretch to;
  to.kind = Stretch::Kind::Remote;
  to.slot = 1;
  to.key = kRkey;
  to.address = std::bit_cast<std::uint64_t>(b.theirs.data());
  to.length = 500;
  LocalPieces pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 0u);
  b.host.other_pid = kBenchPid + 1;  // gone; who has its id now has another plate
  EXPECT_TRUE(plane.write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 1u);
  b.host.vm_pids.clear();
  EXPECT_TRUE(plane.write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 2u);
  EXPECT_TRUE(b.host.vm_pids.empty()) << "asked again, though it was known";
  // A new process in that slot: looked for again, by the id it calls itself, then by softibd's.
  b.memory.arena().slot(1)->generation.fetch_add(2);
  b.memory.arena().slot(1)->pid = kBenchPid + 1;
  EXPECT_TRUE(plane.write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 2u);
  EXPECT_EQ(b.host.vm_pids, (std::vector<std::uint32_t>{kBenchPid, kBenchPid + 1, kBenchPid + 1}));
  EXPECT_TRUE(b.same(500));
}

TEST(Bounce, AProcessWithoutANameplateIsNotTouchedByItsId) {
  BounceBench b;
  MemoryPlane plane(b.memory.arena(), b.host, 0, Path::ProcessVm);
  b.memory.arena().slot(1)->plate_address.store(0);
  b.host.on_relax = [&b] { b.serve(); };
  Stretch from;
  from.kind = Stretch::Kind::Remote;
  from.slot = 1;
  from.key = kRkey;
  from.address = std::bit_cast<std::uint64_t>(b.theirs.data());
  from.length = 500;
  LocalPieces pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.read(pieces, 0, from, 0, 500).ok());
  EXPECT_EQ(b.served, 1u);
  EXPECT_TRUE(b.host.vm_pids.empty());
}

TEST(Bounce, MemoryThatItsOwnerUnmappedFailsBothEnds) {
  for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
    BounceBench b;
    b.host.on_relax = [&b] { b.serve(); };
    b.host.gone = {std::bit_cast<std::uint64_t>(b.theirs.data()) + 50'000, 8};
    EXPECT_EQ(b.post(opcode, 100'000), Status::Ok);
    EXPECT_EQ(b.next(), WcStatus::RemOpErr);
    EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::MemoryGone));
    EXPECT_EQ(b.peer->id.state.load(), QpState::Error);
    ASSERT_EQ(b.host.raised.size(), 1u);
    EXPECT_EQ(b.host.raised[0].type, verbs::EventType::QpAccessErr);
  }
}

TEST(Bounce, MemoryThatThePosterUnmappedIsItsOwnError) {
  for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
    BounceBench b;
    b.host.on_relax = [&b] { b.serve(); };
    b.host.gone = {std::bit_cast<std::uint64_t>(b.mine.data()) + 50'000, 8};
    EXPECT_EQ(b.post(opcode, 100'000), Status::Ok);
    EXPECT_EQ(b.next(), WcStatus::LocProtErr);
    EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::LocalMemoryGone));
    EXPECT_EQ(b.peer->id.state.load(), QpState::Rts);
    EXPECT_TRUE(b.host.raised.empty());
    for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
      EXPECT_EQ(b.memory.arena().bounce(1, i)->request.state.load(), BounceState::Free)
          << "left behind";
    }
  }
}

TEST(Bounce, AnOwnerThatIsStoppedHoldsNobodyUpForGood) {
  BounceBench b;
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);  // returns, though nobody serves
  EXPECT_EQ(b.next(), std::nullopt);
  EXPECT_EQ(b.memory.arena().bounce(1, 0)->request.state.load(), BounceState::Free) << "withdrawn";
  b.host.on_relax = [&b] { b.serve(); };
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
  EXPECT_TRUE(b.same(100));
}

TEST(Bounce, AnOwnerThatDiesMeanwhileEndsTheWait) {
  BounceBench b;
  b.host.on_relax = [&b] { b.memory.arena().slot(1)->generation.fetch_add(1); };
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  EXPECT_EQ(b.next(), std::nullopt);
  b.host.time += std::chrono::hours(1);
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::RetryExcErr);
}

TEST(Bounce, WithoutAFreeEntryTheRequestWaits) {
  BounceBench b;
  for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
    b.memory.arena().bounce(1, i)->request.state.store(BounceState::Claimed);
  }
  EXPECT_EQ(b.post(WrOpcode::RdmaWrite, 100), Status::Ok);
  EXPECT_EQ(b.next(), std::nullopt);
  b.memory.arena().bounce(1, kBouncesPerSlot - 1)->request.state.store(BounceState::Free);
  b.host.on_relax = [&b] { b.serve(); };
  EXPECT_FALSE(b.progress());
  EXPECT_EQ(b.next(), WcStatus::Success);
}

// A requester may put anything into a bounce entry: the owner touches only its regions.
TEST(Bounce, TheOwnerChecksWhatIsAskedOfIt) {
  BounceBench b(4096);
  const auto ask = [&b](BounceOp op, std::uint32_t key, std::uint64_t address, std::uint32_t n) {
    BounceEntry& entry = *b.memory.arena().bounce(1, 0);
    entry.request.op = op;
    entry.request.key = key;
    entry.request.address = address;
    entry.request.length = n;
    entry.request.state.store(BounceState::Submitted);
    b.serve();
    EXPECT_EQ(entry.request.state.load(), BounceState::Done);
    return static_cast<Cause>(entry.request.status);
  };
  const auto base = std::bit_cast<std::uint64_t>(b.theirs.data());
  EXPECT_EQ(ask(BounceOp::Write, kRkey, base, 4096), Cause::None);
  for (const BounceOp op : {BounceOp::Write, BounceOp::Read}) {
    EXPECT_NE(ask(op, kRkey, base, 4097), Cause::None);
    EXPECT_NE(ask(op, kRkey, base - 1, 8), Cause::None);
    EXPECT_NE(ask(op, kRkey, base + 4090, 8), Cause::None);
    EXPECT_NE(ask(op, kRkey, ~std::uint64_t{0} - 3, 8), Cause::None);
    EXPECT_NE(ask(op, kRkey, base, kBounceBytes + 1), Cause::None);
    EXPECT_NE(ask(op, kRkey ^ 1, base, 8), Cause::None);
    EXPECT_NE(ask(op, 0, base, 8), Cause::None);
  }
}

}  // namespace
}  // namespace ib::hca
