// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// After a process was killed: its peers, its locks, the request that it was in the middle of.
#include "drivers/test/driver_bench_test.h"
#include "hca/layout/shm_lock.h"

#include <gtest/gtest.h>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::QpState;
using verbs::QpType;

constexpr std::uint16_t kVictimLid = 1;
constexpr std::uint16_t kPeerLid = 3;

// A process that will die, and one that it is connected to.
struct Scene {
  explicit Scene(std::uint8_t timeout = 14) : peer(b, 12, "node1") {
    victim = std::make_unique<Process>(b, 11, "node0");
    channel = peer.good(peer.root_call(Code::CreateChannel));
    send_cq = peer.cq();
    recv = peer.call<CqOut>(Code::CreateCq, CreateCqIn{20, channel, 0, 0, 0});
    CreateQpIn in = peer.qp_in(QpType::Rc, peer.pd(), send_cq);
    in.recv_cq = recv.handle;
    in.caps.max_recv_wr = 20;  // in longer rings entries are no neighbours (RingOrder)
    peer_qp = peer.call<QpOut>(Code::CreateQp, in);
    victim_qp = victim->qp(QpType::Rc, victim->pd(), victim->cq());
    victim->connect(victim_qp.handle, peer_qp.out.qpn, kPeerLid, timeout);
    peer.connect(peer_qp.handle, victim_qp.out.qpn, kVictimLid, timeout);
    for (std::uint32_t i = 0; i < 3; ++i) post(i);
    entry().owner.rq_tail.store(3);
  }
  // The id of a receive is its position.
  void post(std::uint64_t position) {
    const control::QpOut& qp = peer_qp.out;
    const hca::ReceiveWqe wqe{static_cast<std::uint32_t>(position), 0, 0};
    const std::uint64_t slot = hca::RingOrder(qp.rq_slots).slot(position);
    std::memcpy(b.arena().heap(qp.rq_ring + slot * qp.rq_stride, sizeof wqe), &wqe, sizeof wqe);
  }
  hca::QpEntry& entry() { return sure(b.arena().qp(control::index_of(peer_qp.handle))); }
  hca::CqEntry& cq() { return sure(b.arena().cq(control::index_of(recv.handle))); }
  // A completion at a position, complete with its seq.
  void complete(std::uint64_t position, std::uint32_t id) {
    hca::Cqe& cqe = b.cqe(recv.out.ring, recv.out.slots, position);
    cqe.qpn = peer_qp.out.qpn;
    cqe.wqe = id;
    cqe.seq.store(static_cast<std::uint32_t>(position / recv.out.slots) + 1);
  }
  std::uint32_t owner() const { return hca::lock_owner(victim->attach.slot); }
  QpState state() { return entry().id.state.load(); }
  void kill() {
    victim->exit();
    b.executor.advance(std::chrono::milliseconds(1));
  }

  Bench b;
  Process peer;
  std::unique_ptr<Process> victim;
  std::uint32_t channel = 0;
  std::uint32_t send_cq = 0;
  Reply<CqOut> recv;
  Reply<QpOut> peer_qp;
  Reply<QpOut> victim_qp;
};

TEST(Death, ThePeerGoesToErrorAfterItsOwnRetryTime) {
  Scene s;
  const int wakes = s.b.host.wakes;
  s.kill();
  EXPECT_EQ(s.state(), QpState::Rts);
  EXPECT_EQ(s.entry().geometry.error_cause.load(), Cause::PeerProcessGone);
  EXPECT_EQ(s.entry().geometry.error_detail.load(), 11u);
  // 4.096 us << 14, eight times: 537 ms.
  s.b.executor.advance(std::chrono::milliseconds(500));
  EXPECT_EQ(s.state(), QpState::Rts);
  s.b.executor.advance(std::chrono::milliseconds(50));
  EXPECT_EQ(s.state(), QpState::Error);
  EXPECT_GT(s.b.host.wakes, wakes);
  EXPECT_NE(s.b.trace().find("pid 11, has ended"), std::string::npos) << s.b.trace();
}

std::size_t times(const std::string& text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TraceErrorIn failure_of(const Scene& s) {
  TraceErrorIn in;
  in.qp_index = control::index_of(s.peer_qp.handle);
  in.peer_qpn = s.victim_qp.out.qpn;
  in.status = verbs::WcStatus::RetryExcErr;
  in.cause = Cause::PeerProcessGone;
  in.detail = 11;
  return in;
}

TEST(Death, IsOneLineInTheTraceOfEachPeer) {
  Scene s;
  const auto second = s.peer.qp(QpType::Rc, s.peer.pd(), s.send_cq);
  const auto other = s.victim->qp(QpType::Rc, s.victim->pd(), s.victim->cq());
  s.victim->connect(s.victim->good(other), second.out.qpn, kPeerLid);
  s.peer.connect(s.peer.good(second), other.out.qpn, kVictimLid);
  s.kill();
  s.b.executor.advance(std::chrono::seconds(5));
  s.peer.good(s.peer.root_call(Code::TraceError, failure_of(s)));
  EXPECT_EQ(times(s.b.trace(), "has ended"), 1u) << s.b.trace();
}

TEST(Death, IsToldByTheRequestThatFailsForIt) {
  Scene s;
  s.entry().requester.blocked.store(Cause::PeerProcessGone);
  s.kill();
  s.b.executor.advance(std::chrono::seconds(5));
  EXPECT_EQ(s.state(), QpState::Error);
  EXPECT_EQ(times(s.b.trace(), "has ended"), 0u) << s.b.trace();
  s.peer.good(s.peer.root_call(Code::TraceError, failure_of(s)));
  EXPECT_EQ(times(s.b.trace(), "failed with IBV_WC_RETRY_EXC_ERR"), 1u) << s.b.trace();
}

TEST(Death, WithoutATimeoutThePeerWaitsFourSeconds) {
  Scene s(0);
  s.kill();
  s.b.executor.advance(std::chrono::milliseconds(3900));
  EXPECT_EQ(s.state(), QpState::Rts);
  s.b.executor.advance(std::chrono::milliseconds(200));
  EXPECT_EQ(s.state(), QpState::Error);
}

TEST(Death, APeerThatWasResetMeanwhileIsLeftAlone) {
  Scene s;
  s.kill();
  s.peer.good(s.peer.modify(s.peer_qp.handle, QpState::Reset, 0));
  EXPECT_EQ(s.entry().geometry.error_cause.load(), Cause::None);
  s.peer.connect(s.peer_qp.handle, 0x123456, kVictimLid);
  s.b.executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.state(), QpState::Rts);
}

TEST(Death, AQueuePairThatWasDestroyedInOrderBreaksNobody) {
  Scene s;
  s.victim->good(s.victim->call(Code::DestroyQp, IndexIn{s.victim_qp.handle, 0}));
  s.kill();
  s.b.executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.state(), QpState::Rts);
}

// An XRC receive QP that several have open dies with the last process, whose files may be several.
TEST(Death, AnXrcReceiveQueuePairDiesWithAllWhoHaveIt) {
  Bench b;
  Process sender(b, 12, "node1");
  Process other(b, 13, "node0");
  Process victim(b, 11, "node0");
  const OpenXrcdIn shared{17, 4, 1, 0};
  CreateQpIn in;
  in.type = QpType::XrcRecv;
  in.xrcd = victim.good(victim.call(Code::OpenXrcd, shared));
  const auto receiving = victim.call<QpOut>(Code::CreateQp, in);
  const auto sending = sender.qp(QpType::XrcSend, sender.pd(), sender.cq());
  sender.connect(sender.good(sending), receiving.out.qpn, kVictimLid);
  victim.connect(victim.good(receiving), sending.out.qpn, kPeerLid);
  const auto open = [&](Process& process, io::FileObject& file) {
    const auto xrcd = process.finish<Nothing>(*process.start(file, Code::OpenXrcd, shared));
    const OpenQpIn opened{process.good(xrcd), receiving.out.qpn, 5};
    process.good(process.finish<QpOut>(*process.start(file, Code::OpenQp, opened)));
  };
  open(victim, victim.open_again());
  open(other, other.file());
  const auto& entry = sure(b.arena().qp(control::index_of(sending.handle)));

  other.exit();
  b.executor.advance(std::chrono::seconds(5));
  EXPECT_EQ(entry.id.state.load(), QpState::Rts);
  EXPECT_EQ(entry.geometry.error_cause.load(), Cause::None);

  victim.exit();
  b.executor.advance(std::chrono::seconds(5));
  EXPECT_EQ(entry.id.state.load(), QpState::Error);
  EXPECT_EQ(entry.geometry.error_cause.load(), Cause::PeerProcessGone);
}

TEST(Death, LeavesNothingBehind) {
  Scene s;
  McastIn mcast{0, 0xc001, 0, {}};
  mcast.mgid[0] = 0xff;
  const std::uint32_t pd = s.victim->pd();
  mcast.qp = s.victim->good(s.victim->qp(QpType::Ud, pd, s.victim->cq()));
  s.victim->good(s.victim->call(Code::AttachMcast, mcast));
  s.victim->good(s.victim->mr(pd));
  s.victim->good(s.victim->root_call<BackingOut>(Code::CreateBacking, BackingIn{4096}));
  const std::uint32_t slot = s.victim->attach.slot;
  const std::uint32_t generation = s.victim->attach.slot_generation;
  s.kill();
  EXPECT_EQ(s.b.arena().slot(slot)->live.load(), 0u);
  EXPECT_NE(s.b.arena().slot(slot)->generation.load(), generation);
  EXPECT_EQ(s.b.core().sessions.size(), 1u);
  s.peer.exit();
  s.b.executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.b.objects(), 0u);
  EXPECT_TRUE(s.b.core().sessions.empty());
}

TEST(Death, AThreadThatIsStillInAWorkRequestIsWaitedFor) {
  Scene s;
  s.b.arena().slot(s.victim->attach.slot)->threads[3].sequence.store(1);
  s.b.root->disconnect(s.victim->zero());  // but the process lives
  s.b.executor.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(s.b.arena().slot(s.victim->attach.slot)->live.load(), 1u);
  s.b.arena().slot(s.victim->attach.slot)->threads[3].sequence.store(2);
  s.b.executor.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(s.b.arena().slot(s.victim->attach.slot)->live.load(), 0u);
}

// --- repair: each test is one store further in the delivery of a message ---

TEST(Repair, DiedBeforeTheCompletionWasWritten) {
  Scene s;
  s.entry().responder.cq_intent.store(1);
  s.kill();
  EXPECT_EQ(s.entry().responder.cq_intent.load(), 0u);
  EXPECT_EQ(s.entry().responder.rq_head.load(), 0u) << "the receive was not used";
  EXPECT_EQ(s.cq().producer.producer.load(), 0u);
}

TEST(Repair, DiedAfterTheCompletionBeforeTheProducerIndex) {
  Scene s;
  s.entry().responder.cq_intent.store(1);
  s.complete(0, 0);
  s.cq().arm.armed.store(1);
  s.kill();
  EXPECT_EQ(s.cq().producer.producer.load(), 1u);
  EXPECT_EQ(s.entry().responder.rq_head.load(), 1u);
  EXPECT_EQ(s.entry().responder.cq_intent.load(), 0u);
  EXPECT_EQ(s.b.host.piped, std::vector<std::uint64_t>{control::index_of(s.recv.handle)})
      << "the sleeper is woken";
  EXPECT_EQ(s.cq().arm.armed.load(), 0u);
}

TEST(Repair, DiedAfterTheCompletionOfALaterReceive) {
  Scene s;
  s.entry().responder.rq_head.store(2);
  s.entry().responder.cq_intent.store(3);
  s.cq().producer.producer.store(2);
  s.complete(2, 2);
  s.kill();
  EXPECT_EQ(s.cq().producer.producer.load(), 3u);
  EXPECT_EQ(s.entry().responder.rq_head.load(), 3u);
}

// The owner may post the next receive as soon as it has polled that completion.
TEST(Repair, DiedAfterTheCompletionOfAReceiveWhosePlaceHasAnotherOneByNow) {
  Scene s;
  const std::uint32_t slots = s.peer_qp.out.rq_slots;
  s.post(slots);
  s.entry().owner.rq_tail.store(slots + 1);
  s.entry().responder.cq_intent.store(1);
  s.complete(0, 0);
  s.kill();
  EXPECT_EQ(s.entry().responder.rq_head.load(), 1u);
}

// A survivor that waits for posters flushes as soon as this one has left.
TEST(Repair, UntilItIsDoneTheDeadProcessCountsAsOneThatMayDeliver) {
  Scene s;
  s.entry().responder.cq_intent.store(1);
  s.complete(0, 0);
  s.cq().arm.armed.store(1);
  const hca::ProcessSlot& slot = sure(s.b.arena().slot(s.victim->attach.slot));
  bool was_seen = false;
  s.b.host.on_pipe = [&] {
    was_seen = true;
    EXPECT_EQ(slot.live.load(), 1u);
    EXPECT_EQ(slot.generation.load(), s.victim->attach.slot_generation);
    EXPECT_EQ(s.entry().responder.rq_head.load(), 1u);
  };
  s.kill();
  EXPECT_TRUE(was_seen);
  EXPECT_EQ(slot.live.load(), 0u);
}

TEST(Repair, DiedBetweenTheClaimOfAnEventAndItsReport) {
  Scene s;
  s.complete(0, 0);
  s.cq().producer.producer.store(1);
  s.entry().responder.rq_head.store(1);
  s.cq().arm.armed.store(hca::CqEntry::kFiring);
  s.kill();
  EXPECT_EQ(s.b.host.piped, std::vector<std::uint64_t>{control::index_of(s.recv.handle)})
      << "the sleeper is woken";
  EXPECT_EQ(s.cq().arm.armed.load(), 0u);
}

TEST(Repair, ItsEventWaitsIfThePipeIsFull) {
  Scene s;
  s.b.host.pipes_are_full = true;
  s.complete(0, 0);
  s.cq().producer.producer.store(1);
  s.entry().responder.rq_head.store(1);
  s.cq().arm.armed.store(hca::CqEntry::kFiring);
  s.kill();
  EXPECT_TRUE(s.b.host.piped.empty());
  EXPECT_EQ(s.cq().arm.late.load(), 1u);
  const hca::ProcessSlot& owner = sure(s.b.arena().slot(s.peer.attach.slot));
  EXPECT_EQ(owner.late_events.load(), 1u);
  EXPECT_EQ(owner.doorbell.load(), 1u) << "its owner looks for late events";
}

TEST(Repair, ItsOwnerLooksForEventsThatTheDeadOneHasCounted) {
  Scene s;
  s.cq().arm.late.store(3);
  s.kill();
  EXPECT_EQ(s.cq().arm.late.load(), 3u);
  EXPECT_EQ(sure(s.b.arena().slot(s.peer.attach.slot)).doorbell.load(), 1u);
}

TEST(Repair, DiedAfterTheReceiveWasGivenUp) {
  Scene s;
  s.entry().responder.cq_intent.store(1);
  s.complete(0, 0);
  s.cq().producer.producer.store(1);
  s.entry().responder.rq_head.store(1);
  s.kill();
  EXPECT_EQ(s.entry().responder.rq_head.load(), 1u) << "not twice";
  EXPECT_EQ(s.entry().responder.cq_intent.load(), 0u);
}

TEST(Repair, TheLockOfACompletionQueueIsBroken) {
  Scene s;
  // A second producer makes it shared.
  const std::uint32_t pd = s.peer.pd();
  s.peer.good(s.peer.qp(QpType::Ud, pd, s.recv.handle));
  s.cq().producer.lock.store(s.owner());
  s.cq().producer.producer.store(4);
  s.cq().consumer.consumer.store(4);
  s.complete(4, 0);
  s.entry().responder.cq_intent.store(5);
  s.kill();
  EXPECT_EQ(s.cq().producer.lock.load(), 0u);
  EXPECT_EQ(s.cq().producer.producer.load(), 5u);
  EXPECT_EQ(s.entry().responder.rq_head.load(), 1u);
}

TEST(Repair, DiedAfterItLeftTheLockAndOthersWroteOn) {
  Scene s;
  s.peer.good(s.peer.qp(QpType::Ud, s.peer.pd(), s.recv.handle));
  s.entry().responder.cq_intent.store(1);
  s.entry().responder.srq_taken.store(71);
  s.complete(0, 0);
  s.complete(4, 1);  // the same place, one round later
  s.cq().producer.producer.store(5);
  s.kill();
  EXPECT_EQ(s.entry().responder.srq_taken.load(), 0u) << "it was delivered";
  EXPECT_EQ(s.entry().responder.cq_intent.load(), 0u);
  EXPECT_EQ(s.cq().producer.producer.load(), 5u);
}

TEST(Repair, TheLockOfAnAtomicIsBroken) {
  Scene s;
  const hca::Arena& arena = s.b.core().arena();
  arena.atomic_lock_at(3).store(s.owner());
  arena.atomic_lock_at(hca::kAtomicLocks - 1).store(s.owner());
  arena.atomic_lock_at(4).store(hca::lock_owner(s.peer.attach.slot));
  s.kill();
  EXPECT_EQ(arena.atomic_lock_at(3).load(), 0u);
  EXPECT_EQ(arena.atomic_lock_at(hca::kAtomicLocks - 1).load(), 0u);
  EXPECT_EQ(arena.atomic_lock_at(4).load(), hca::lock_owner(s.peer.attach.slot));
}

TEST(Repair, LocksOfTheLivingAreNotTouched) {
  Scene s;
  s.cq().producer.lock.store(hca::lock_owner(s.peer.attach.slot));
  s.kill();
  EXPECT_EQ(s.cq().producer.lock.load(), hca::lock_owner(s.peer.attach.slot));
}

// Nonsense in device memory: nothing crashes, the loops end.
TEST(Repair, GarbageInDeviceMemoryIsSurvived) {
  Scene s;
  s.entry().responder.cq_intent.store(~std::uint64_t{0});
  s.entry().responder.rq_head.store(~std::uint64_t{0} - 5);
  s.entry().owner.rq_tail.store(12345678901234);
  s.entry().geometry.rq_ring = ~std::uint64_t{0};
  s.entry().geometry.rq_slots = 0;
  s.entry().id.recv_cq = 4000000000u;
  s.entry().id.port = 4000000000u;
  s.cq().id.ring = 1;
  s.cq().id.slots = 3;
  s.cq().producer.producer.store(~std::uint64_t{0});
  s.cq().consumer.consumer.store(7);
  s.cq().arm.armed.store(2);
  s.b.arena().qp(control::index_of(s.victim_qp.handle))->connection.dest_qpn = 77;
  s.b.arena().qp(control::index_of(s.victim_qp.handle))->id.state.store(static_cast<QpState>(1000));
  s.b.arena().slot(s.victim->attach.slot)->generation.store(99);
  s.kill();
  s.peer.exit();
  s.b.executor.advance(std::chrono::seconds(10));
  EXPECT_EQ(s.b.objects(), 0u);
}

// --- shared receive queues and datagrams ---

struct DatagramScene {
  DatagramScene() : target(b, 12, "node1") {
    victim = std::make_unique<Process>(b, 11, "node0");
    const std::uint32_t pd = target.pd();
    CreateSrqIn in;
    in.pd = pd;
    in.max_wr = 20;
    srq = target.call<SrqOut>(Code::CreateSrq, in);
    cq = target.cq();
    CreateQpIn qp_in = target.qp_in(QpType::Ud, pd, cq);
    qp_in.srq = srq.handle;
    qp = target.call<QpOut>(Code::CreateQp, qp_in);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const hca::ReceiveWqe wqe{80 + i, 0, 0};
      const std::uint64_t at =
          srq.out.ring + std::uint64_t{hca::RingOrder(srq.out.slots).slot(i)} * srq.out.stride;
      std::memcpy(b.arena().heap(at, sizeof wqe), &wqe, sizeof wqe);
    }
    srq_entry().producer.tail.store(4);
    owner = hca::lock_owner(victim->attach.slot);
    entry().lock.rq_lock.store(owner);
  }
  hca::QpEntry& entry() { return sure(b.arena().qp(control::index_of(qp.handle))); }
  hca::SrqEntry& srq_entry() { return sure(b.arena().srq(control::index_of(srq.handle))); }
  void kill() {
    victim->exit();
    b.executor.advance(std::chrono::milliseconds(1));
  }
  Bench b;
  Process target;
  std::unique_ptr<Process> victim;
  Reply<SrqOut> srq;
  std::uint32_t cq = 0;
  Reply<QpOut> qp;
  std::uint32_t owner = 0;
};

TEST(Repair, DiedBeforeTheHeadOfTheSharedQueueMoved) {
  DatagramScene s;
  s.srq_entry().consumer.lock.store(s.owner);
  s.entry().responder.srq_taken.store(81);  // id 80, which is still at the head
  s.kill();
  EXPECT_EQ(s.entry().responder.srq_taken.load(), 0u);
  EXPECT_EQ(s.srq_entry().consumer.head.load(), 0u);
  EXPECT_EQ(s.srq_entry().consumer.lock.load(), 0u);
  EXPECT_EQ(s.entry().lock.rq_lock.load(), 0u);
}

TEST(Repair, AReceiveThatADatagramHeldGoesBack) {
  DatagramScene s;
  s.entry().responder.srq_taken.store(81);
  s.srq_entry().consumer.head.store(1);
  s.kill();
  EXPECT_EQ(s.srq_entry().consumer.head.load(), 0u);
  EXPECT_EQ(s.entry().responder.srq_taken.load(), 0u);
  EXPECT_EQ(s.entry().lock.rq_lock.load(), 0u);
}

// In the order of slots, which is another one than that of positions from the second on.
TEST(Repair, AReceiveInTheMiddleOfTheQueueGoesBack) {
  DatagramScene s;
  s.entry().responder.srq_taken.store(83);
  s.srq_entry().consumer.head.store(3);
  s.kill();
  EXPECT_EQ(s.srq_entry().consumer.head.load(), 2u);
  EXPECT_EQ(s.entry().responder.srq_taken.load(), 0u);
}

TEST(Repair, AReceiveThatWasCompletedDoesNotGoBack) {
  DatagramScene s;
  s.entry().responder.srq_taken.store(81);
  s.srq_entry().consumer.head.store(1);
  s.entry().responder.cq_intent.store(1);
  hca::CqEntry& cq = sure(s.b.arena().cq(control::index_of(s.cq)));
  cq.producer.lock.store(s.owner);
  hca::Cqe& cqe = s.b.cqe(cq.id.ring, cq.id.slots, 0);
  cqe.qpn = s.qp.out.qpn;
  cqe.wqe = 80;
  cqe.seq.store(1);
  s.kill();
  EXPECT_EQ(s.srq_entry().consumer.head.load(), 1u);
  EXPECT_EQ(s.entry().responder.srq_taken.load(), 0u);
  EXPECT_EQ(cq.producer.producer.load(), 1u);
  EXPECT_EQ(cq.producer.lock.load(), 0u);
}

TEST(Repair, TheSlotIsFreeOnlyWhenNobodyWorksForTheDeadAnyMore) {
  DatagramScene s;
  const std::uint32_t slot = s.victim->attach.slot;
  const auto bounce = [&](std::uint32_t i) -> hca::BounceEntry& {
    return sure(s.b.arena().bounce(s.target.attach.slot, i));
  };
  const auto state = [&](std::uint32_t i) -> hca::SharedEnum<hca::BounceState>& {
    return bounce(i).request.state;
  };
  const hca::BounceState states[] = {hca::BounceState::Claimed, hca::BounceState::Submitted,
                                     hca::BounceState::Done, hca::BounceState::Running};
  for (std::uint32_t i = 0; i < 4; ++i) {
    bounce(i).request.requester_slot.store(slot);
    state(i).store(states[i]);
  }
  s.kill();
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(state(i).load(), hca::BounceState::Free);
  EXPECT_TRUE(s.b.core().resting_slots.empty());
  EXPECT_EQ(s.b.core().settling.slots, std::vector{slot});
  state(3).store(hca::BounceState::Done);
  s.b.executor.advance(std::chrono::milliseconds(50));
  EXPECT_EQ(state(3).load(), hca::BounceState::Free);
  EXPECT_EQ(s.b.core().resting_slots, std::deque{slot});
}

TEST(Repair, TwoThatWorkedForEachOtherAndDiedTogetherLeaveNothing) {
  DatagramScene s;
  const std::uint32_t slots[] = {s.victim->attach.slot, s.target.attach.slot};
  for (const std::uint32_t server : {0u, 1u}) {
    hca::BounceEntry& bounce = sure(s.b.arena().bounce(slots[server], 3));
    bounce.request.requester_slot.store(slots[1 - server]);
    bounce.request.state.store(hca::BounceState::Running);
  }
  s.victim->exit();
  s.target.exit();
  s.b.executor.advance(std::chrono::milliseconds(50));
  EXPECT_TRUE(s.b.core().settling.slots.empty());
  for (const std::uint32_t slot : slots) {
    EXPECT_EQ(sure(s.b.arena().bounce(slot, 3)).request.state.load(), hca::BounceState::Free);
  }
}

}  // namespace
}  // namespace ib::drivers::test
