// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The slow path looks at its peer again for each request; and the order of the stores that
// softibd's repair after a death relies on (docs/design/0003-notes.md). The fast path has the same
// checks in fast_path_test.cpp.
#include "hca/layout/first_use.h"
#include "hca/layout/flow.h"
#include "hca/test/poster_bench_test.h"

#include <gtest/gtest.h>

#include <csignal>

namespace ib::hca {
namespace {

using verbs::WcStatus;
using verbs::WrOpcode;

// A pair whose requests take the slow path only, and do not wait for long.
struct LongBench : PairBench {
  LongBench() {
    limits.timeout = 8;
    limits.retry_count = 1;
    requester->set_limits(limits);
  }
  std::optional<WcStatus> run(WrOpcode opcode, std::uint32_t rkey = kRkey, std::uint64_t n = 8) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), static_cast<std::uint32_t>(n), kLkey};
    SendWqe wqe;
    wqe.wr_id = ++posted;
    wqe.opcode = opcode;
    wqe.flags = verbs::send_flag::kSignaled;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.rkey = rkey;
    wqe.imm = rkey;  // what SEND with invalidate names
    wqe.remote_address = std::bit_cast<std::uint64_t>(theirs.data());
    const OpScope scope(plane);
    EXPECT_EQ(requester->post(wqe, Way::Slow), Status::Ok);
    host.time += std::chrono::seconds(1);
    (void)requester->progress();
    return next();
  }
  // A type 2 window over all of the peer's region, bound to a queue pair.
  KeyEntry& make_window(std::uint32_t key, std::uint32_t qpn) {
    memory.make_key(key, 1, theirs.data(), theirs.size());
    KeyEntry& window = *memory.arena().key(key_index(key));
    window.id.kind = KeyKind::Window2;
    window.id.window_qpn = qpn;
    window.id.window_region = key_index(kRkey);
    return window;
  }
  void tell() { advance_epoch(memory.arena(), peer->id.owner_slot); }
};

struct PkeyCase {
  std::uint16_t mine;
  std::uint16_t theirs;
  bool pass;
};

TEST(SlowPath, TheTwoEndsShareAPartition) {
  for (const PkeyCase& one : {PkeyCase{0xffff, 0xffff, true}, PkeyCase{0xffff, 0x7fff, true},
                              PkeyCase{0x7fff, 0x7fff, false}, PkeyCase{0x8001, 0xffff, false},
                              PkeyCase{0x8001, 0x8001, true}, PkeyCase{0x8001, 0x8002, false}}) {
    SCOPED_TRACE(one.theirs);
    LongBench b;
    b.own->id.pkey = one.mine;
    b.peer->id.pkey = one.theirs;
    const auto status = b.run(WrOpcode::RdmaWrite);
    EXPECT_EQ(status, one.pass ? WcStatus::Success : WcStatus::RetryExcErr);
    if (!one.pass) {
      EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::PkeyMismatch));
    }
  }
}

// Else softibd would not wait for this request before it stops or destroys one of them.
TEST(SlowPath, BothEndsKnowOfItsUseBeforeItLooksAtTheirStates) {
  LongBench b;
  EXPECT_TRUE(was_never_used(*b.own));
  EXPECT_TRUE(was_never_used(*b.peer));
  b.peer->id.state.store(verbs::QpState::Error);
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite), WcStatus::RetryExcErr);
  EXPECT_FALSE(was_never_used(*b.own));
  EXPECT_FALSE(was_never_used(*b.peer)) << "it was in Error, but may have been about to leave it";
}

TEST(SlowPath, AFlowThatIsBlockedSaysWhy) {
  LongBench b;
  b.own->connection.flow.store(flow::blocked(Cause::PortDown));
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite), WcStatus::RetryExcErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::PortDown));
}

// Another queue pair may have got the peer's number; its queues are others.
TEST(SlowPath, APeerThatIsAnotherOneIsLookedAtAnew) {
  LongBench b;
  b.receive(1, 100);
  EXPECT_EQ(b.run(WrOpcode::Send), WcStatus::Success);
  EXPECT_NE(b.memory.completion(1, 0), nullptr);
  b.memory.make_cq(2, 1, 64, 63);
  QpEntry& again = b.memory.make_qp(kPeer, 1, kMine, 2);
  again.id.generation = 2;
  b.receive(9, 100);
  EXPECT_EQ(b.run(WrOpcode::Send), WcStatus::Success);
  EXPECT_EQ(b.memory.completion(1, 1), nullptr) << "the completion queue of the one before";
  const Cqe* cqe = b.memory.completion(2, 0);
  ASSERT_NE(cqe, nullptr);
  EXPECT_EQ(cqe->wqe, 9u);
}

// Not told, the pair goes on; told, it compares.
TEST(SlowPath, PsnsAndPathMtusAreComparedWhenSomethingHasChanged) {
  LongBench b;
  b.own->connection.sq_psn = 0xffffff;
  b.peer->connection.rq_psn = 0xffffff;
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite), WcStatus::Success);
  b.own->connection.mtu = verbs::Mtu::B4096;
  b.peer->connection.mtu = verbs::Mtu::B256;
  b.tell();
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite, kRkey, 256), WcStatus::Success);
  b.peer->connection.rq_psn = 0;
  b.tell();
  EXPECT_EQ(b.run(WrOpcode::RdmaWrite), WcStatus::RetryExcErr);
  EXPECT_EQ(b.last.vendor_err, static_cast<std::uint32_t>(Cause::PsnMismatch));
}

TEST(SlowPath, AWindowWhoseRegionIsGoneGrantsNothing) {
  constexpr std::uint32_t kWindow = 0x501;
  struct Fate {
    KeyState region;
    std::optional<WcStatus> status;
  };
  for (const Fate& fate :
       {Fate{KeyState::Valid, WcStatus::Success}, Fate{KeyState::Invalid, WcStatus::RemAccessErr},
        Fate{KeyState::Moving, std::nullopt}}) {
    LongBench b;
    b.make_window(kWindow, kPeer);
    KeyEntry& region = *b.memory.arena().key(key_index(kRkey));
    region.id.state.store(fate.region);
    EXPECT_EQ(b.run(WrOpcode::RdmaWrite, kWindow), fate.status);
    EXPECT_EQ(b.same(8), fate.region == KeyState::Valid);
  }
  LongBench none;
  none.memory.make_key(kWindow, 1, none.theirs.data(), none.theirs.size());
  KeyEntry& window = *none.memory.arena().key(key_index(kWindow));
  window.id.kind = KeyKind::Window1;
  window.id.window_region = kNone;
  EXPECT_EQ(none.run(WrOpcode::RdmaWrite, kWindow), WcStatus::RemAccessErr);
}

// The window is of the poster's own process, where private memory decides about the region.
TEST(SlowPath, AWindowOfTheOwnProcessWhoseRegionIsGoneGrantsNothing) {
  constexpr std::uint32_t kWindow = 0x501;
  for (const bool gone : {false, true}) {
    LongBench b;
    b.peer->id.owner_slot = 0;
    b.memory.make_key(kRkey, 0, b.theirs.data(), b.theirs.size());
    BenchArena::cache_key(b.plane, kRkey, b.theirs.data(), b.theirs.size());
    b.memory.make_key(kWindow, 0, b.theirs.data(), b.theirs.size());
    KeyEntry& window = *b.memory.arena().key(key_index(kWindow));
    window.id.kind = KeyKind::Window1;
    window.id.window_region = key_index(kRkey);
    if (gone) b.plane.local_keys().hide(key_index(kRkey));
    EXPECT_EQ(b.run(WrOpcode::RdmaWrite, kWindow),
              gone ? WcStatus::RemAccessErr : WcStatus::Success);
    EXPECT_EQ(b.same(8), !gone);
  }
}

// A key grants access through queue pairs of its own process only, though its protection domain has
// the right number.
TEST(SlowPath, AKeyOfAThirdProcessGrantsNothing) {
  constexpr std::uint32_t kOther = 0x601;
  for (const std::uint32_t owner : {0u, 1u, 2u}) {
    SCOPED_TRACE(owner);
    const bool pass = owner == 1;
    for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::Send}) {
      LongBench b;
      b.memory.make_key(kOther, owner, b.theirs.data(), b.theirs.size());
      if (owner == 0) BenchArena::cache_key(b.plane, kOther, b.theirs.data(), b.theirs.size());
      if (owner == 2) {  // what the third process has at this address is reachable
        const ProcessSlot& second = *b.memory.arena().slot(1);
        ProcessSlot& third = *b.memory.arena().slot(2);
        third.live.store(1);
        third.generation.store(3);
        third.own_pid.store(second.own_pid.load());
        third.plate_number.store(second.plate_number.load());
        third.plate_address.store(second.plate_address.load());
        b.memory.arena().header().slots_used.store(3);
      }
      const Sge room{std::bit_cast<std::uint64_t>(b.theirs.data()), 100, kOther};
      b.memory.post_receive(*b.peer, 1, {room});
      const WcStatus refusal =
          opcode == WrOpcode::Send ? WcStatus::RemOpErr : WcStatus::RemAccessErr;
      // Too long to ride in a completion.
      EXPECT_EQ(b.run(opcode, kOther, 100), pass ? WcStatus::Success : refusal);
      EXPECT_EQ(b.same(100), pass);
    }
  }
}

// Private memory decides about keys of the poster's own process, whatever device memory contains.
TEST(SlowPath, AKeyOfAnotherProtectionDomainOfTheOwnProcessGrantsNothing) {
  for (const std::uint32_t pd : {1u, 2u}) {
    for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::Send}) {
      LongBench b;
      b.peer->id.owner_slot = 0;
      b.memory.make_key(kRkey, 0, b.theirs.data(), b.theirs.size());
      BenchArena::cache_key(b.plane, kRkey, b.theirs.data(), b.theirs.size());
      b.plane.local_keys().at(key_index(kRkey)).pd = pd;
      b.receive(1, 100);
      const WcStatus refusal =
          opcode == WrOpcode::Send ? WcStatus::RemOpErr : WcStatus::RemAccessErr;
      EXPECT_EQ(b.run(opcode, kRkey, 100), pd == 1 ? WcStatus::Success : refusal);
      EXPECT_EQ(b.same(100), pd == 1);
    }
  }
}

TEST(SlowPath, ASendInvalidatesWindowsOfItsPeersQueuePairOnly) {
  constexpr std::uint32_t kWindow = 0x501;
  for (const std::uint32_t qpn : {kPeer, kPeer + 1}) {
    LongBench b;
    const KeyEntry& window = b.make_window(kWindow, qpn);
    b.receive(1, 100);
    const bool pass = qpn == kPeer;
    EXPECT_EQ(b.run(WrOpcode::SendWithInv, kWindow),
              pass ? WcStatus::Success : WcStatus::RetryExcErr);
    const auto valid = KeyState::Valid;
    EXPECT_EQ(window.id.state.load() == valid, !pass);
  }
}

TEST(StoreOrder, ACompletionIsWrittenBeforeItIsValid) {
  PairBench b;
  CqProducer producer(b.memory.arena(), 1);
  Shared64 intent{0};
  CqEntry& cq = *b.memory.arena().cq(1);
  for (std::uint64_t at = 0; at < 200; ++at) {
    bool looked = false;
    const auto look = [&](Cqe& slot) {
      looked = true;
      const auto turn = static_cast<std::uint32_t>(at / 64) + 1;
      EXPECT_NE(slot.seq.load(), turn) << "valid before it is written";
      EXPECT_EQ(intent.load(), at + 1) << "announced before it is written";
      EXPECT_EQ(cq.producer.producer.load(), at) << "counted before it is written";
    };
    if (at % 2 == 0 && at != 0) {
      EXPECT_TRUE(producer.push_fast(0, &intent, look));
    } else {
      EXPECT_EQ(producer.push_with(b.memory.arena(), b.host, 0, &intent, look), Push::Done);
    }
    EXPECT_TRUE(looked);
    EXPECT_NE(b.memory.completion(1, at), nullptr);
    cq.consumer.consumer.store(at + 1);
  }
}

// The first store to a page that is read-only, and what a word was then.
struct Trap {
  static inline std::byte* page = nullptr;
  static inline const Shared64* word = nullptr;
  static inline void* volatile address = nullptr;
  static inline volatile std::uint64_t seen = 0;
  static constexpr std::size_t kPage = 4096;

  static void on_fault(int, siginfo_t* info, void*) {
    auto* at = static_cast<std::byte*>(info->si_addr);
    if (at < page || at >= page + kPage) {
      (void)::signal(SIGSEGV, SIG_DFL);  // a real one
      return;
    }
    address = at;
    seen = word->load(std::memory_order_relaxed);
    (void)::mprotect(page, kPage, PROT_READ | PROT_WRITE);
  }
  Trap(void* around, const Shared64& watched) {
    page = std::bit_cast<std::byte*>(std::bit_cast<std::uintptr_t>(around) & ~(kPage - 1));
    word = &watched;
    address = nullptr;
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &action, &before_), 0);
    EXPECT_EQ(::mprotect(page, kPage, PROT_READ), 0);
  }
  ~Trap() {
    (void)::mprotect(page, kPage, PROT_READ | PROT_WRITE);
    (void)::sigaction(SIGSEGV, &before_, nullptr);
  }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

 private:
  struct sigaction before_ {};
};

// Else a sender that dies in between has taken a receive that is never given back.
TEST(StoreOrder, AReceiveOfASharedQueueIsNamedBeforeItIsTaken) {
  PairBench b;
  SrqEntry& srq = *new (b.memory.arena().srq(1)) SrqEntry;
  srq.id.owner_slot = 1;
  srq.id.pd = 1;
  srq.id.slots = 16;
  srq.id.stride = receive_stride(4);
  srq.id.ring = b.memory.allocate(std::uint64_t{16} * srq.id.stride);
  srq.id.generation.store(1);
  const ReceiveWqe wqe{70, 1, 0};
  const Sge room{std::bit_cast<std::uint64_t>(b.theirs.data()), 100, kRkey};
  std::byte* slot = b.memory.arena().heap(srq.id.ring, srq.id.stride);
  std::memcpy(slot, &wqe, sizeof wqe);
  std::memcpy(slot + sizeof wqe, &room, sizeof room);
  srq.producer.tail.store(1);
  b.peer->id.srq = 1;
  begin_use(*b.own);  // by an earlier message
  begin_use(*b.peer);
  {
    const Trap trap(b.peer, srq.consumer.head);
    EXPECT_EQ(b.post(WrOpcode::Send, 100), Status::Ok);
    EXPECT_EQ(Trap::address, &b.peer->responder.srq_taken) << "the first store to the queue pair";
    EXPECT_EQ(Trap::seen, 0u) << "taken before it is named";
  }
  EXPECT_EQ(srq.consumer.head.load(), 1u);
  EXPECT_EQ(b.peer->responder.srq_taken.load(), 0u) << "delivered";
  EXPECT_EQ(b.next(), WcStatus::Success);
}

}  // namespace
}  // namespace ib::hca
