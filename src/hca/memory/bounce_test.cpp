// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The third path into another process, alone and where process_vm does not reach that.
#include "hca/memory/bounce.h"

#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

namespace ib::hca {
namespace {

using verbs::QpState;
using verbs::WcStatus;
using verbs::WrOpcode;

// The peer's service thread: looks at its entries whenever the requester waits.
struct BounceBench : PairBench {
  explicit BounceBench(std::size_t bytes = 100'000) : PairBench(Path::Bounce, bytes) {
    BenchArena::cache_key(peer_plane, kRkey, theirs.data(), theirs.size());
  }
  void serve() {
    for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
      BounceEntry* entry = memory.arena().bounce(1, i);
      if (entry->request.state.load() == BounceState::Submitted) {
        server.serve(*entry);
        ++served;
      }
    }
  }
  MemoryPlane peer_plane{memory.arena(), host, 1, Path::Bounce};
  BounceServer server{memory.arena(), host, 1, peer_plane.local_keys()};
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
  b.host.reach.vm = Status::AccessDenied;
  b.host.on_relax = [&b] { b.serve(); };
  Stretch to;
  to.kind = Stretch::Kind::Remote;
  to.slot = 1;
  to.key = kRkey;
  to.address = std::bit_cast<std::uint64_t>(b.theirs.data());
  to.length = 500;
  LocalPiecesOf<1> pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.mover().write(pieces, 0, to, 0, 500).ok());
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
  LocalPiecesOf<1> pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.mover().write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 0u);
  b.host.reach.other_pid = kBenchPid + 1;  // gone; who has its id now has another plate
  EXPECT_TRUE(plane.mover().write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 1u);
  b.host.reach.vm_pids.clear();
  EXPECT_TRUE(plane.mover().write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 2u);
  EXPECT_TRUE(b.host.reach.vm_pids.empty()) << "asked again, though it was known";
  // A new process in that slot: looked for again, by the id it calls itself, then by softibd's.
  b.memory.arena().slot(1)->generation.fetch_add(2);
  b.memory.arena().slot(1)->pid = kBenchPid + 1;
  EXPECT_TRUE(plane.mover().write(pieces, 0, to, 0, 500).ok());
  EXPECT_EQ(b.served, 2u);
  EXPECT_EQ(b.host.reach.vm_pids,
            (std::vector<std::uint32_t>{kBenchPid, kBenchPid + 1, kBenchPid + 1}));
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
  LocalPiecesOf<1> pieces;
  pieces.add(b.mine.data(), 500);
  EXPECT_TRUE(plane.mover().read(pieces, 0, from, 0, 500).ok());
  EXPECT_EQ(b.served, 1u);
  EXPECT_TRUE(b.host.reach.vm_pids.empty());
}

TEST(Bounce, MemoryThatItsOwnerUnmappedFailsBothEnds) {
  for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
    BounceBench b;
    b.host.on_relax = [&b] { b.serve(); };
    b.host.reach.gone = {std::bit_cast<std::uint64_t>(b.theirs.data()) + 50'000, 8};
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
    b.host.reach.gone = {std::bit_cast<std::uint64_t>(b.mine.data()) + 50'000, 8};
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
