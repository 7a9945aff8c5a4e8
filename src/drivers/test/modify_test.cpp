// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changing queue pairs, and waiting for posters before a request completes.
#include "drivers/diagnostics/status.h"
#include "drivers/test/driver_bench_test.h"
#include "hca/layout/first_use.h"
#include "hca/layout/flow.h"

#include <gtest/gtest.h>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

namespace a = verbs::qp_attr;
using verbs::QpState;
using verbs::QpType;

struct Pair {
  explicit Pair(Bench& b) : left(b, 11, "node0"), right(b, 12, "node1") {
    left_made = make(left);
    right_made = make(right);
  }
  static Reply<QpOut> make(Process& p) { return p.qp(QpType::Rc, p.pd(), p.cq()); }
  void connect(std::uint8_t timeout = 14) {
    left.connect(left_made.handle, right_made.out.qpn, kRightLid, timeout);
    right.connect(right_made.handle, left_made.out.qpn, kLeftLid, timeout);
  }
  // As their first message does.
  static void use(Bench& b, const Reply<QpOut>& made) {
    hca::begin_use(*b.arena().qp(control::index_of(made.handle)));
  }
  static constexpr std::uint16_t kLeftLid = 1;
  static constexpr std::uint16_t kRightLid = 3;
  Process left;
  Process right;
  Reply<QpOut> left_made;
  Reply<QpOut> right_made;
};

// A poster of `slot` enters or leaves a work request.
void poster_moves(Bench& b, std::uint32_t slot) {
  b.arena().slot(slot)->threads[0].sequence.fetch_add(1);
}

TEST(ModifyQp, ConnectingStoresWhatPostersNeed) {
  Bench b;
  Pair pair(b);
  const int wakes = b.host.wakes;
  pair.connect();
  const hca::QpEntry& entry = *b.arena().qp(control::index_of(pair.left_made.handle));
  EXPECT_EQ(entry.id.state.load(), QpState::Rts);
  EXPECT_EQ(entry.connection.dest_qpn, pair.right_made.out.qpn);
  EXPECT_EQ(entry.connection.address.dlid, Pair::kRightLid);
  EXPECT_EQ(entry.id.lid, Pair::kLeftLid);
  EXPECT_EQ(entry.id.pkey, 0xffff);
  EXPECT_EQ(entry.id.min_rnr_timer, 12);
  EXPECT_EQ(entry.connection.mtu, verbs::Mtu::B4096);
  EXPECT_EQ(entry.connection.dest_port, b.fabric.nodes()[1].hcas[0].first_port);
  EXPECT_EQ(entry.connection.flow.load(), hca::flow::kMemory);
  EXPECT_EQ(b.host.wakes, wakes);
  const auto query = pair.left.call<QueryQpOut>(Code::QueryQp, IndexIn{pair.left_made.handle, 0});
  EXPECT_EQ(query.out.attr.state, QpState::Rts);
  EXPECT_EQ(query.out.attr.dest_qpn, pair.right_made.out.qpn);
  EXPECT_EQ(query.out.caps.max_recv_wr, 16u);
}

// Requests of the first may wait for the second.
TEST(ModifyQp, APeerThatHasPostedIsWokenWhenItCanBeHeard) {
  Bench b;
  Pair pair(b);
  pair.left.connect(pair.left_made.handle, pair.right_made.out.qpn, Pair::kRightLid, 14);
  Pair::use(b, pair.left_made);
  const int wakes = b.host.wakes;
  pair.right.connect(pair.right_made.handle, pair.left_made.out.qpn, Pair::kLeftLid, 14);
  EXPECT_GT(b.host.wakes, wakes);
}

// A barrier interrupts other cores.
TEST(ModifyQp, WhatNobodyHasUsedIsMadeStoppedAndDestroyedWithoutABarrier) {
  Bench b;
  Pair pair(b);
  EXPECT_EQ(b.host.every_process.passed, 0) << "made";
  pair.connect();
  poster_moves(b, pair.left.attach.slot);  // with something else
  const auto epoch = [&] { return b.arena().slot(pair.left.attach.slot)->epoch.load(); };
  const std::uint64_t before = epoch();
  pair.left.good(pair.left.modify(pair.left_made.handle, QpState::Error, 0));
  EXPECT_GT(epoch(), before);
  pair.left.good(pair.left.modify(pair.left_made.handle, QpState::Reset, 0));
  pair.left.good(pair.left.call(Code::DestroyQp, IndexIn{pair.left_made.handle, 0}));
  EXPECT_EQ(b.host.every_process.passed, 0);
  poster_moves(b, pair.left.attach.slot);
  Pair::use(b, pair.right_made);
  pair.right.good(pair.right.modify(pair.right_made.handle, QpState::Error, 0));
  EXPECT_EQ(b.host.every_process.passed, 1);
  pair.right.good(pair.right.call(Code::DestroyQp, IndexIn{pair.right_made.handle, 0}));
  EXPECT_EQ(b.host.every_process.passed, 2);
}

// Senders to a datagram queue pair do not find it by a connection.
TEST(ModifyQp, DatagramsAlwaysNeedTheBarrier) {
  Bench b;
  Process p(b, 11, "node0");
  const Reply<QpOut> made = p.qp(QpType::Ud, p.pd(), p.cq());
  p.good(p.call(Code::DestroyQp, IndexIn{made.handle, 0}));
  EXPECT_EQ(b.host.every_process.passed, 1);
}

// Posters cache states of ports and paths of queue pairs until an epoch rises.
TEST(ModifyQp, PathsRaiseTheirOwnersEpochAndPortsThatOfAll) {
  Bench b;
  Pair pair(b);
  const auto epoch = [&b](const Process& p) { return b.arena().slot(p.attach.slot)->epoch.load(); };
  const std::uint64_t left = epoch(pair.left);
  const std::uint64_t right = epoch(pair.right);
  pair.left.connect(pair.left_made.handle, pair.right_made.out.qpn, Pair::kRightLid, 14);
  EXPECT_GT(epoch(pair.left), left);
  EXPECT_EQ(epoch(pair.right), right);
  const std::uint64_t connected = epoch(pair.left);
  SetPortIn down;
  put_text(down.node, "node0");
  put_text(down.ca, "softib0");
  down.port = 2;
  pair.right.good(pair.right.root_call(Code::SetPort, down));
  EXPECT_GT(epoch(pair.left), connected);
  EXPECT_GT(epoch(pair.right), right);
}

// As on a wire: requests to a LID that no port has find their way once a port has it.
TEST(ModifyQp, AnAddressThatNoPortHasIsResolvedWhenOneComes) {
  Bench b;
  Pair pair(b);
  const std::uint32_t ports = b.fabric.graph().port_count();
  const auto lid = static_cast<std::uint16_t>(ports + 1);
  pair.left.connect(pair.left_made.handle, pair.right_made.out.qpn, lid, 14);
  const auto& connection = b.arena().qp(control::index_of(pair.left_made.handle))->connection;
  EXPECT_EQ(connection.dest_port, hca::kNone);
  EXPECT_EQ(connection.flow.load(), hca::flow::blocked(Cause::PeerUnknown));
  ChangeHcaIn add;
  add.action = HcaAction::Add;
  put_text(add.node, "node0");
  pair.right.good(pair.right.root_call<CaName>(Code::ChangeHca, add));
  EXPECT_EQ(connection.dest_port, ports);
  EXPECT_EQ(connection.flow.load(), hca::flow::kMemory);
}

TEST(ModifyQp, ValuesAreChecked) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t qp = p.good(p.qp(QpType::Rc, p.pd(), p.cq()));
  constexpr std::uint32_t kInit = a::kPort | a::kPkeyIndex | a::kAccessFlags;
  QpAttr attr;
  attr.port = 3;
  EXPECT_EQ(p.modify(qp, QpState::Init, kInit, attr).reason, "HCA softib0 has ports 1 to 2, not 3");
  attr.port = 1;
  attr.pkey_index = 1;
  EXPECT_EQ(p.modify(qp, QpState::Init, kInit, attr).status, Status::InvalidParameter);
  attr.pkey_index = 0;
  p.good(p.modify(qp, QpState::Init, kInit, attr));
  constexpr std::uint32_t kRtr =
      a::kAv | a::kPathMtu | a::kDestQpn | a::kRqPsn | a::kMaxDestRdAtomic | a::kMinRnrTimer;
  attr.path_mtu = verbs::Mtu::B1024;
  attr.av.port = 1;
  EXPECT_NE(p.modify(qp, QpState::Rtr, kRtr, attr).reason.find("LID 0"), std::string::npos);
  attr.av.dlid = 0xc001;
  EXPECT_NE(p.modify(qp, QpState::Rtr, kRtr, attr).reason.find("multicast"), std::string::npos);
  attr.av.dlid = 3;
  attr.dest_qpn = 1u << 24;
  EXPECT_EQ(p.modify(qp, QpState::Rtr, kRtr, attr).reason,
            "dest_qp_num 16777216; at most 16777215");
  attr.dest_qpn = 5;
  attr.max_dest_rd_atomic = 17;
  EXPECT_EQ(p.modify(qp, QpState::Rtr, kRtr, attr).status, Status::InvalidParameter);
  attr.max_dest_rd_atomic = 16;
  EXPECT_EQ(p.modify(qp, QpState::Rts, a::kSqPsn, attr).status, Status::InvalidParameter);
  p.good(p.modify(qp, QpState::Rtr, kRtr, attr));
  EXPECT_NE(b.trace().find("pid 11 (test) on node0: ibv_modify_qp refused: "), std::string::npos);
}

TEST(ModifyQp, TheStateThatAPosterSetIsTheCurrentOne) {
  Bench b;
  Pair pair(b);
  pair.connect();
  Process& p = pair.left;
  const std::uint32_t qp = pair.left_made.handle;
  b.arena().qp(control::index_of(qp))->id.state.store(QpState::Error);
  EXPECT_EQ(p.call<QueryQpOut>(Code::QueryQp, IndexIn{qp, 0}).out.attr.state, QpState::Error);
  EXPECT_EQ(p.modify(qp, QpState::Sqd, 0).status, Status::InvalidParameter);
  QpAttr attr;
  attr.cur_state = QpState::Rts;
  EXPECT_EQ(p.modify(qp, QpState::Rts, a::kCurState, attr).status, Status::InvalidParameter);
  const auto reset = p.modify(qp, QpState::Reset, 0);
  EXPECT_EQ(reset.out.old_state, QpState::Error);
  EXPECT_EQ(reset.out.state, QpState::Reset);
}

TEST(ModifyQp, ResetAndErrorAreAnsweredWhenPostersHaveLeft) {
  Bench b;
  Pair pair(b);
  pair.connect();
  hca::QpEntry& entry = *b.arena().qp(control::index_of(pair.left_made.handle));
  entry.responder.rq_head.store(3);
  entry.owner.rq_tail.store(5);
  hca::begin_use(entry);
  poster_moves(b, pair.right.attach.slot);
  ModifyQpIn in{pair.left_made.handle, a::kState, {}};
  in.attr.state = QpState::Reset;
  const auto request = pair.left.begin(Code::ModifyQp, in);
  b.executor.advance(std::chrono::milliseconds(20));
  EXPECT_FALSE(request->done);
  EXPECT_EQ(entry.id.state.load(), QpState::Reset);
  EXPECT_EQ(pair.left.call(Code::DestroyQp, IndexIn{pair.left_made.handle, 0}).status,
            Status::DeviceBusy);
  poster_moves(b, pair.right.attach.slot);
  poster_moves(b, pair.right.attach.slot);  // into the next request: no wait for that one
  pair.left.finish<ModifyQpOut>(*request);
  EXPECT_EQ(entry.responder.rq_head.load(), 0u);
  EXPECT_EQ(entry.owner.rq_tail.load(), 0u);
  poster_moves(b, pair.right.attach.slot);
}

TEST(Quiescence, ADestroyedObjectIsReusedOnlyAfterPostersHaveLeft) {
  Bench b;
  Process p(b, 11, "node0");
  Process poster(b, 12, "node0");
  const std::uint32_t cq = p.cq();
  poster_moves(b, poster.attach.slot);
  const auto request = p.begin(Code::DestroyCq, IndexIn{cq, 0});
  b.executor.advance(std::chrono::seconds(1));
  EXPECT_FALSE(request->done);
  EXPECT_EQ(b.arena().cq(control::index_of(cq))->id.generation.load(), 0u);
  EXPECT_EQ(b.core().memory.heap().pieces(), 1u);
  EXPECT_EQ(b.core().later.waiting_for_posters(), 1u);
  poster_moves(b, poster.attach.slot);
  b.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(request->done);
  EXPECT_EQ(b.core().memory.heap().pieces(), 0u);
}

// The stopped client is in a request of a queue pair that is connected to another process.
TEST(Quiescence, OneThatIsStoppedHoldsUpItsPeerAndNobodyElse) {
  Bench b;
  Pair pair(b);
  pair.connect();
  Process other(b, 13, "node0");
  const std::uint32_t cq = other.cq();
  const std::uint32_t peers_cq = pair.right.cq();
  b.arena()
      .slot(pair.left.attach.slot)
      ->threads[0]
      .sequence.store(1 | hca::executing::queue_pair(control::index_of(pair.left_made.handle)));
  const auto request = other.begin(Code::DestroyCq, IndexIn{cq, 0});
  EXPECT_TRUE(request->done);
  EXPECT_EQ(b.core().later.waiting_for_posters(), 0u);
  const auto waits = pair.right.begin(Code::DestroyCq, IndexIn{peers_cq, 0});
  b.executor.advance(std::chrono::seconds(1));
  EXPECT_FALSE(waits->done);
  const auto holders = b.core().later.holders();
  ASSERT_EQ(holders.size(), 1u);
  b.executor.advance(std::chrono::milliseconds(10));
  EXPECT_NE(b.core().trace.text_after(0).find("waits since 1 s for pid 11"), std::string::npos)
      << b.core().trace.text_after(0);
  EXPECT_EQ(holders[0].slot, pair.left.attach.slot);
  EXPECT_EQ(holders[0].qp, control::index_of(pair.left_made.handle));
  EXPECT_EQ(holders[0].waiting, 1u);
  EXPECT_GE(b.executor.now() - holders[0].since, std::chrono::seconds(1));
  EXPECT_NE(status_json(b.core()).find("\"posters_waited_for\": [\n    {\n      \"pid\": 11"),
            std::string::npos)
      << status_json(b.core());
  b.arena().slot(pair.left.attach.slot)->threads[0].sequence.store(2);
  b.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(waits->done);
}

// The stopped client is in a section of a stream: it names a queue pair that is softibd's.
TEST(Quiescence, OneThatIsStoppedInAStreamHoldsUpTheOwnersOfTheStreamOnly) {
  Bench b;
  Pair pair(b);
  pair.connect();
  Process stopped(b, 13, "node0");
  Process other(b, 14, "node0");
  const std::uint32_t region = other.good(other.mr(other.pd()));
  b.arena()
      .slot(stopped.attach.slot)
      ->threads[0]
      .sequence.store(1 | hca::executing::queue_pair(control::index_of(pair.left_made.handle)));
  const auto request = other.begin(Code::DeregMr, IndexIn{region, 0});
  EXPECT_TRUE(request->done);
  hca::begin_use(*b.arena().qp(control::index_of(pair.left_made.handle)));
  const auto waits = pair.left.begin(Code::DestroyQp, IndexIn{pair.left_made.handle, 0});
  const auto waits_too = pair.right.begin(Code::DestroyCq, IndexIn{pair.right.cq(), 0});
  b.executor.advance(std::chrono::seconds(1));
  EXPECT_FALSE(waits->done);
  EXPECT_FALSE(waits_too->done);
  b.arena().slot(stopped.attach.slot)->threads[0].sequence.store(2);
  b.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(waits->done);
  EXPECT_TRUE(waits_too->done);
}

TEST(Quiescence, ASecondProducerWaitsUntilTheFirstTakesTheLock) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t cq = p.cq();
  const std::uint32_t other = p.cq();
  CreateQpIn in = p.qp_in(QpType::Rc, pd, cq);
  in.recv_cq = other;
  p.good(p.call<QpOut>(Code::CreateQp, in));
  poster_moves(b, p.attach.slot);
  const auto second = p.begin(Code::CreateQp, in);
  const auto third = p.begin(Code::CreateQp, in);  // the flag is set, but not read by all posters
  b.executor.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(b.arena().cq(control::index_of(cq))->id.shared_producers.load(), 1u);
  EXPECT_FALSE(second->done);
  EXPECT_FALSE(third->done);
  poster_moves(b, p.attach.slot);
  p.good(p.finish<QpOut>(*second));
  p.good(p.finish<QpOut>(*third));
}

TEST(Quiescence, WhatIsStillBeingMadeCannotBeUsed) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t cq = p.cq();
  CreateQpIn in = p.qp_in(QpType::Rc, pd, cq);
  in.recv_cq = p.cq();
  const std::uint32_t first = p.good(p.call<QpOut>(Code::CreateQp, in));
  poster_moves(b, p.attach.slot);
  const auto making = p.begin(Code::CreateQp, in);
  EXPECT_FALSE(making->done);
  const std::uint32_t guess = first + 1;
  EXPECT_EQ(p.modify(guess, QpState::Error, 0).status, Status::InvalidParameter);
  EXPECT_EQ(p.call(Code::DestroyQp, IndexIn{guess, 0}).status, Status::InvalidParameter);
  poster_moves(b, p.attach.slot);
  EXPECT_EQ(p.good(p.finish<QpOut>(*making)), guess);
  p.good(p.call(Code::DestroyQp, IndexIn{guess, 0}));
}

TEST(Quiescence, ARequestWhoseProcessEndsMeanwhileIsStillAnswered) {
  Bench b;
  Process p(b, 11, "node0");
  Process poster(b, 12, "node0");
  const std::uint32_t cq = p.cq();
  const Reply<QpOut> qp = p.qp(QpType::Rc, p.pd(), p.cq());
  Pair::use(b, qp);
  poster_moves(b, poster.attach.slot);
  ModifyQpIn in{p.good(qp), a::kState, {}};
  in.attr.state = QpState::Reset;
  const auto modify = p.begin(Code::ModifyQp, in);
  const auto destroy = p.begin(Code::DestroyCq, IndexIn{cq, 0});
  b.host.alive.erase(11);
  b.root->disconnect(p.zero());
  poster_moves(b, poster.attach.slot);
  b.executor.advance(std::chrono::milliseconds(20));
  EXPECT_TRUE(modify->done);
  EXPECT_TRUE(destroy->done);
  EXPECT_EQ(b.objects(), 0u);
}

TEST(Quiescence, NobodyWaitsForADeadProcessWhateverDeviceMemorySays) {
  Bench b;
  Process p(b, 11, "node0");
  auto poster = std::make_unique<Process>(b, 12, "node0");
  const std::uint32_t slot = poster->attach.slot;
  poster_moves(b, slot);
  const std::uint32_t first = p.cq();
  const auto before = p.begin(Code::DestroyCq, IndexIn{first, 0});
  poster.reset();
  sure(b.arena().slot(slot)).live.store(1);  // a hostile process scribbles
  const std::uint32_t second = p.cq();
  const auto after = p.begin(Code::DestroyCq, IndexIn{second, 0});
  b.executor.advance(std::chrono::milliseconds(5));
  EXPECT_TRUE(before->done);
  EXPECT_TRUE(after->done);
}

TEST(ModifyQp, DrainingRaisesTheEventWhenItIsOver) {
  Bench b;
  Pair pair(b);
  pair.connect();
  const auto waiting = pair.left.start(pair.left.zero(), Code::WaitEvent, Nothing{});
  poster_moves(b, pair.left.attach.slot);
  QpAttr attr;
  attr.en_sqd_async_notify = 1;
  pair.left.good(pair.left.modify(pair.left_made.handle, QpState::Sqd, a::kEnSqdAsyncNotify, attr));
  b.executor.advance(std::chrono::milliseconds(5));
  EXPECT_FALSE(waiting->done);
  poster_moves(b, pair.left.attach.slot);
  const auto event = pair.left.finish<EventOut>(*waiting);
  EXPECT_EQ(event.out.type, verbs::EventType::SqDrained);
  EXPECT_EQ(event.out.index, control::index_of(pair.left_made.handle));
  EXPECT_EQ(event.out.cookie, 99u);
}

TEST(ModifyQp, MigrationTakesBothEndsToTheAlternatePath) {
  Bench b;
  Pair pair(b);
  pair.connect();
  const auto rearm = [](Process& p, std::uint32_t qp, std::uint16_t alternate_lid) {
    QpAttr attr;
    attr.alt_av.dlid = alternate_lid;
    attr.alt_av.port = 2;
    attr.alt_port = 2;
    attr.alt_timeout = 12;
    attr.mig_state = verbs::MigState::Rearm;
    p.good(p.modify(qp, QpState::Rts, a::kAltPath | a::kPathMigState, attr));
  };
  rearm(pair.left, pair.left_made.handle, 4);
  rearm(pair.right, pair.right_made.handle, 2);
  const auto query = pair.left.call<QueryQpOut>(Code::QueryQp, IndexIn{pair.left_made.handle, 0});
  EXPECT_EQ(query.out.attr.mig_state, verbs::MigState::Armed);
  pair.left.good(pair.left.modify(pair.left_made.handle, QpState::Rts, a::kPathMigState));
  EXPECT_EQ(b.arena().qp(control::index_of(pair.left_made.handle))->connection.address.dlid, 4);
  EXPECT_EQ(b.arena().qp(control::index_of(pair.left_made.handle))->id.lid, 2);
  EXPECT_EQ(b.arena().qp(control::index_of(pair.right_made.handle))->connection.address.dlid, 2);
  for (Process* p : {&pair.left, &pair.right}) {
    EXPECT_EQ(p->root_call<EventOut>(Code::WaitEvent).out.type, verbs::EventType::PathMig);
  }
}

}  // namespace
}  // namespace ib::drivers::test
