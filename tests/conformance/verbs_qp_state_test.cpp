// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of queue pairs: which modify requests are accepted, what can be posted in each state,
// draining, errors and reset [IBA1 10.3.1, 11.2.5.2].
#include "softibd/in_process_daemon.h"
#include "verbs/qp_state.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

namespace ib::conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::array kStates{QpState::Reset, QpState::Init, QpState::Rtr,  QpState::Rts,
                             QpState::Sqd,   QpState::Sqe,  QpState::Error};
constexpr std::array kTypes{QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend, QpType::XrcRecv};

// The attributes that libibverbs' manual requires with each transition, besides the state. Separate
// from the table of verbs/qp_state.cpp on purpose.
std::uint32_t manual_required(QpType type, QpState to) {
  using namespace qp_attr;
  const bool ud = type == QpType::Ud;
  const bool rc_receiver = type == QpType::Rc || type == QpType::XrcRecv;
  const bool rc_sender = type == QpType::Rc || type == QpType::XrcSend;
  if (to == QpState::Init) return kPkeyIndex | kPort | (ud ? kQkey : kAccessFlags);
  if (to == QpState::Rtr) {
    if (ud) return 0;
    return kAv | kPathMtu | kDestQpn | kRqPsn | (rc_receiver ? kMaxDestRdAtomic | kMinRnrTimer : 0);
  }
  return kSqPsn | (rc_receiver || rc_sender ? kTimeout : 0) |
         (rc_sender ? kRetryCnt | kRnrRetry | kMaxQpRdAtomic : 0);
}

class QueuePairStates : public VerbsTest {
 protected:
  Qp make(Side& side, QpType type) {
    QpSpec spec;
    spec.type = type;
    if (type == QpType::XrcRecv) {
      if (xrcd == kNoHandle) xrcd = side.new_xrcd({});
      spec.xrcd = xrcd;
    }
    return side.new_qp(spec);
  }
  control::QpAttr attributes(const Qp& qp, const Qp& peer, QpState to) {
    if (to == QpState::Init) return init_attributes();
    if (to == QpState::Rtr) return rtr_attributes(qp, peer);
    control::QpAttr attr = rts_attributes();
    attr.state = to;
    return attr;
  }
  // Brings a fresh queue pair of A into a state; SQE needs a failing request.
  void bring(const Qp& qp, QpType type, const Qp& peer, QpState to) {
    if (to == QpState::Reset) return;
    to_init(qp, type);
    if (to == QpState::Init) return;
    if (to == QpState::Error) return qp.to(QpState::Error);
    EXPECT_EQ(qp.try_modify(required(type, QpState::Init, QpState::Rtr), rtr_attributes(qp, peer)),
              Status::Ok)
        << a->reason();
    if (to == QpState::Rtr) return;
    to_rts(qp, type);
    if (to == QpState::Sqd) qp.to(QpState::Sqd);
    if (to == QpState::Sqe) {
      Work bad = send_work(1, {{16, 8, 0}});
      bad.address = a->new_address(a->path_to(*b));
      qp.send(bad);
      (void)a->cq().one(WcStatus::LocProtErr);
    }
    EXPECT_EQ(qp.state(), to);
  }
  std::uint32_t xrcd = kNoHandle;
};
IB_EVERY_SETTING(QueuePairStates);

// These tests do not depend on the memory path, so they run once instead of six times.
#define IB_ONCE()                                                                               \
  if (GetParam().where != Where::SameProcess || std::string(GetParam().path) != "process_vm") { \
    return;                                                                                     \
  }

TEST_P(QueuePairStates, EveryTransitionIsAcceptedOrRefusedAsTheTableSays) {
  IB_ONCE();
  for (const QpType type : kTypes) {
    for (const QpState from : kStates) {
      if (from == QpState::Sqe && type != QpType::Ud && type != QpType::Uc) continue;
      for (const QpState to : kStates) {
        SCOPED_TRACE(std::string(verbs::qp_type_name(type)) + " " + verbs::qp_state_name(from) +
                     " to " + verbs::qp_state_name(to));
        const Qp peer = b->new_qp();
        const Qp qp = make(*a, type);
        bring(qp, type, peer, from);
        const verbs::QpTransition rule = verbs::qp_transition(type, from, to);
        const Status status =
            qp.try_modify(rule.required | qp_attr::kState, attributes(qp, peer, to));
        EXPECT_EQ(status, rule.legal ? Status::Ok : Status::InvalidParameter) << a->reason();
        EXPECT_EQ(qp.state(), rule.legal ? to : from);
        EXPECT_EQ(qp.query().attr.state, rule.legal ? to : from);
        EXPECT_EQ(qp.try_destroy(), Status::Ok);
        EXPECT_EQ(peer.try_destroy(), Status::Ok);
      }
    }
  }
}

TEST_P(QueuePairStates, TheUsualStepsNeedWhatTheManualLists) {
  IB_ONCE();
  for (const QpType type : kTypes) {
    for (const auto& [from, to] : {std::pair{QpState::Reset, QpState::Init},
                                   {QpState::Init, QpState::Rtr},
                                   {QpState::Rtr, QpState::Rts}}) {
      const std::uint32_t needed = manual_required(type, to);
      const Qp peer = b->new_qp();
      const Qp qp = make(*a, type);
      bring(qp, type, peer, from);
      const control::QpAttr attr = attributes(qp, peer, to);
      for (std::uint32_t bit = 1; bit != 0 && bit <= qp_attr::kDestQpn; bit <<= 1) {
        SCOPED_TRACE(std::string(verbs::qp_type_name(type)) + " to " + verbs::qp_state_name(to) +
                     ", attribute " + verbs::qp_attr_names(bit));
        if ((needed & bit) != 0) {
          EXPECT_EQ(qp.try_modify((needed | qp_attr::kState) & ~bit, attr),
                    Status::InvalidParameter);
        } else if (bit != qp_attr::kState &&
                   (verbs::qp_transition(type, from, to).optional & bit) == 0) {
          EXPECT_EQ(qp.try_modify(needed | qp_attr::kState | bit, attr), Status::InvalidParameter);
        }
        EXPECT_EQ(qp.state(), from);
      }
      EXPECT_EQ(qp.try_modify(needed | qp_attr::kState, attr), Status::Ok) << a->reason();
      EXPECT_EQ(qp.try_destroy(), Status::Ok);
      EXPECT_EQ(peer.try_destroy(), Status::Ok);
    }
  }
}

TEST_P(QueuePairStates, ImpossibleValuesAreRefusedAndChangeNothing) {
  IB_ONCE();
  const auto refused = [this](QpState from, void (*spoil)(control::QpAttr&)) {
    const Qp peer = b->new_qp();
    const Qp qp = a->new_qp();
    bring(qp, QpType::Rc, peer, from);
    const QpState to = from == QpState::Reset  ? QpState::Init
                       : from == QpState::Init ? QpState::Rtr
                                               : QpState::Rts;
    control::QpAttr attr = attributes(qp, peer, to);
    spoil(attr);
    EXPECT_EQ(qp.try_modify(required(QpType::Rc, from, to), attr), Status::InvalidParameter);
    EXPECT_FALSE(a->reason().empty());
    EXPECT_EQ(qp.state(), from);
  };
  refused(QpState::Reset, [](control::QpAttr& x) { x.port = 0; });
  refused(QpState::Reset, [](control::QpAttr& x) { x.port = 3; });
  refused(QpState::Reset, [](control::QpAttr& x) { x.pkey_index = 9; });
  refused(QpState::Reset, [](control::QpAttr& x) { x.pkey_index = 99; });
  refused(QpState::Init, [](control::QpAttr& x) { x.path_mtu = static_cast<verbs::Mtu>(0); });
  refused(QpState::Init, [](control::QpAttr& x) { x.path_mtu = static_cast<verbs::Mtu>(6); });
  refused(QpState::Init, [](control::QpAttr& x) { x.dest_qpn = 0x1000000; });
  refused(QpState::Init, [](control::QpAttr& x) { x.rq_psn = 0x1000000; });
  refused(QpState::Init, [](control::QpAttr& x) { x.max_dest_rd_atomic = 17; });
  refused(QpState::Init, [](control::QpAttr& x) { x.min_rnr_timer = 32; });
  refused(QpState::Init, [](control::QpAttr& x) { x.av.dlid = 0; });
  refused(QpState::Init, [](control::QpAttr& x) { x.av.port = 9; });
  refused(QpState::Rtr, [](control::QpAttr& x) { x.timeout = 32; });
  refused(QpState::Rtr, [](control::QpAttr& x) { x.retry_cnt = 8; });
  refused(QpState::Rtr, [](control::QpAttr& x) { x.rnr_retry = 8; });
  refused(QpState::Rtr, [](control::QpAttr& x) { x.max_rd_atomic = 17; });
  refused(QpState::Rtr, [](control::QpAttr& x) { x.sq_psn = 0x1000000; });
}

TEST_P(QueuePairStates, AControlledQkeyIsTaken) {
  IB_ONCE();
  const Qp qp = make(*a, QpType::Ud);
  control::QpAttr attr = init_attributes();
  attr.qkey = verbs::kControlledQkey | 1;
  EXPECT_EQ(qp.try_modify(required(QpType::Ud, QpState::Reset, QpState::Init), attr), Status::Ok);
  EXPECT_EQ(qp.state(), QpState::Init);
}

TEST_P(QueuePairStates, QueryAnswersWhatWasSet) {
  Connection with;
  with.timeout = 11;
  with.retry_cnt = 5;
  with.rnr_retry = 4;
  with.min_rnr_timer = 13;
  with.max_rd_atomic = 6;
  with.max_dest_rd_atomic = 9;
  with.mtu = verbs::Mtu::B1024;
  with.access = access::kRemoteRead;
  make_pair(QpType::Rc, with);
  const control::QueryQpOut out = qa.query();
  EXPECT_EQ(out.attr.state, QpState::Rts);
  EXPECT_EQ(out.attr.path_mtu, verbs::Mtu::B1024);
  EXPECT_EQ(out.attr.dest_qpn, qb.qpn);
  EXPECT_EQ(out.attr.rq_psn, 0xfffffeu);
  EXPECT_EQ(out.attr.sq_psn, 0xfffffeu);
  EXPECT_EQ(out.attr.access, access::kRemoteRead);
  EXPECT_EQ(out.attr.timeout, 11);
  EXPECT_EQ(out.attr.retry_cnt, 5);
  EXPECT_EQ(out.attr.rnr_retry, 4);
  EXPECT_EQ(out.attr.min_rnr_timer, 13);
  EXPECT_EQ(out.attr.max_rd_atomic, 6);
  EXPECT_EQ(out.attr.max_dest_rd_atomic, 9);
  EXPECT_EQ(out.attr.port, 1);
  EXPECT_EQ(out.attr.av.dlid, b->info().port.lid);
  EXPECT_EQ(out.caps.max_send_wr, qa.caps.max_send_wr);
  EXPECT_EQ(out.caps.max_inline, qa.caps.max_inline);
}

TEST_P(QueuePairStates, TheNamedCurrentStateMustBeTheTrueOne) {
  make_pair(QpType::Rc);
  control::QpAttr attr;
  attr.state = QpState::Rts;
  attr.cur_state = QpState::Sqd;
  EXPECT_EQ(qa.try_modify(qp_attr::kState | qp_attr::kCurState, attr), Status::InvalidState);
  attr.cur_state = QpState::Rts;
  EXPECT_EQ(qa.try_modify(qp_attr::kState | qp_attr::kCurState, attr), Status::Ok);
}

// --- What may be posted when ---

TEST_P(QueuePairStates, SendsAreAcceptedFromRtsOn) {
  qa = a->new_qp();
  qb = b->new_qp();
  EXPECT_EQ(qa.try_send(send_work(1, {})), Status::InvalidState);
  to_init(qa, QpType::Rc);
  EXPECT_EQ(qa.try_send(send_work(1, {})), Status::InvalidState);
  to_rtr(qa, QpType::Rc, qb);
  EXPECT_EQ(qa.try_send(send_work(1, {})), Status::InvalidState);
  to_rts(qa, QpType::Rc);
  EXPECT_EQ(qa.try_send(send_work(1, {})), Status::Ok);
}

TEST_P(QueuePairStates, ReceivesAreAcceptedFromInitOn) {
  qa = a->new_qp();
  qb = b->new_qp();
  EXPECT_EQ(qb.try_receive(1, {}), Status::InvalidState);
  to_init(qb, QpType::Rc);
  EXPECT_EQ(qb.try_receive(1, {}), Status::Ok);
  to_rtr(qb, QpType::Rc, qa);
  EXPECT_EQ(qb.try_receive(2, {}), Status::Ok);
  to_init(qa, QpType::Rc);
  to_rtr(qa, QpType::Rc, qb);
  to_rts(qa, QpType::Rc);
  qa.send(send_work(1, {}));  // RTR already receives
  qa.send(send_work(2, {}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 2u);
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
}

TEST_P(QueuePairStates, ADrainedQueueHoldsWhatIsPostedUntilItGoesOn) {
  make_pair(QpType::Rc);
  for (std::uint64_t i = 0; i < 3; ++i) qb.receive(i, {});
  qa.to(QpState::Sqd);
  qa.send(send_work(1, {}));
  qa.send(send_work(2, {}));
  EXPECT_TRUE(a->cq().stays_empty());
  EXPECT_TRUE(b->cq().drain().empty());
  qa.to(QpState::Rts);
  const auto sent = a->cq().wait(2);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].wr_id, 1u);
  EXPECT_EQ(sent[1].wr_id, 2u);
}

TEST_P(QueuePairStates, ADrainedQueueStillReceives) {
  make_pair(QpType::Rc);
  qa.to(QpState::Sqd);
  qa.receive(1, {});
  qb.send(send_work(2, {}));
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 1u);
}

TEST_P(QueuePairStates, DrainingIsAnnouncedIfAskedFor) {
  QpSpec spec;
  spec.cookie = 0xd1;
  make_pair(QpType::Rc, {}, spec);
  control::QpAttr attr;
  attr.state = QpState::Sqd;
  attr.en_sqd_async_notify = 1;
  EXPECT_EQ(qa.try_modify(qp_attr::kState | qp_attr::kEnSqdAsyncNotify, attr), Status::Ok);
  const auto event = a->event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, verbs::EventType::SqDrained);
  EXPECT_EQ(event->cookie, 0xd1u);
}

TEST_P(QueuePairStates, RetryLimitsCanBeChangedWhileDrained) {
  make_pair(QpType::Rc);
  qa.to(QpState::Sqd);
  control::QpAttr attr = rts_attributes();
  attr.rnr_retry = 1;
  EXPECT_EQ(qa.try_modify(qp_attr::kRnrRetry, attr), Status::Ok) << a->reason();
  qa.to(QpState::Rts);
  qa.send(send_work(1, {}));
  (void)a->cq().one(WcStatus::RnrRetryExcErr);
}

TEST_P(QueuePairStates, TheWayCanBeChangedWhileDrained) {
  Connection with;
  with.timeout = 8;
  with.retry_cnt = 1;
  make_pair(QpType::Rc, with);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t i = 0; i < 3; ++i) {  // a has cached its peer's state
    qa.send(rdma(WrOpcode::RdmaWrite, i, {ma.sge(0, 8)}, mb));
    (void)a->cq().one(WcStatus::Success);
  }
  qa.to(QpState::Sqd);
  control::QpAttr attr = rts_attributes();
  if (is_ethernet()) {
    attr.av = a->path_to(*b);
    attr.av.dgid.back() ^= 3 ^ 4;  // of the other node
  } else {
    attr.av.port = 1;
    attr.av.dlid = 0x4321;  // of no port
  }
  EXPECT_EQ(qa.try_modify(qp_attr::kAv, attr), Status::Ok) << a->reason();
  qa.to(QpState::Rts);
  qa.send(rdma(WrOpcode::RdmaWrite, 3, {ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::RetryExcErr);
}

TEST_P(QueuePairStates, RightsCanBeChangedInRts) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::Success);
  control::QpAttr attr;
  attr.access = access::kRemoteRead;
  EXPECT_EQ(qb.try_modify(qp_attr::kAccessFlags, attr), Status::Ok) << b->reason();
  qa.send(rdma(WrOpcode::RdmaRead, 2, {ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::Success);
  qa.send(rdma(WrOpcode::RdmaWrite, 3, {ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::RemInvReqErr);
}

TEST_P(QueuePairStates, ResetForgetsEverything) {
  make_pair(QpType::Rc);
  for (std::uint64_t i = 0; i < 5; ++i) qa.receive(100 + i, {});
  for (std::uint64_t i = 0; i < 5; ++i) qa.send(send_work(i, {}));  // without a receive: all wait
  qb.send(send_work(1, {}));  // one completion that is not polled
  EXPECT_EQ(b->cq().wait(1).size(), 1u);
  qa.to(QpState::Reset);
  EXPECT_TRUE(a->cq().stays_empty());
  EXPECT_EQ(qa.try_send(send_work(1, {})), Status::InvalidState);
  EXPECT_EQ(qa.try_receive(1, {}), Status::InvalidState);
  qb.to(QpState::Reset);
  EXPECT_TRUE(b->cq().stays_empty());
  for (int again = 0; again < 3; ++again) {
    connect(qa, qb, QpType::Rc);
    for (std::uint64_t i = 0; i < qb.caps.max_recv_wr; ++i) qb.receive(i, {});
    for (std::uint64_t i = 0; i < 10; ++i) qa.send(send_work(i, {}));
    const auto received = b->cq().wait(10);
    ASSERT_EQ(received.size(), 10u);
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(a->cq().wait(10).size(), 10u);
    qa.to(QpState::Reset);
    qb.to(QpState::Reset);
  }
}

TEST_P(QueuePairStates, ABrokenPairWorksAgainAfterReset) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t round = 0; round < 5; ++round) {
    qb.receive(1, {mb.sge(0, 4)});
    qa.send(send_work(2, {ma.sge(0, 8)}));
    (void)a->cq().one(WcStatus::RemInvReqErr);
    (void)b->cq().one(WcStatus::LocLenErr);
    qa.to(QpState::Reset);
    qb.to(QpState::Reset);
    connect(qa, qb, QpType::Rc);
    qb.receive(3, {mb.sge(0, 8)});
    qa.send(send_work(4, {ma.sge(0, 8)}));
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 4u);
    EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 3u);
  }
}

// --- Init again, as librdmacm does ---

TEST_P(QueuePairStates, ASecondMoveToInitNeedsNoRequest) {
  IB_ONCE();
  const Qp qp = make(*a, QpType::Rc);
  to_init(qp, QpType::Rc);
  std::promise<void> release;
  std::thread blocker(
      [&] { TestFabric::shared().daemon().on_loop([&] { release.get_future().wait(); }); });
  const std::uint32_t mask = required(QpType::Rc, QpState::Reset, QpState::Init);
  control::QpAttr other = init_attributes();
  other.access = access::kRemoteRead;
  auto moved = std::async(std::launch::async, [&] {
    const Status same = qp.try_modify(mask, init_attributes());
    return same == Status::Ok ? qp.try_modify(mask, other) : same;
  });
  EXPECT_EQ(moved.wait_for(20s), std::future_status::ready) << "softibd answers nobody";
  release.set_value();
  blocker.join();
  EXPECT_EQ(moved.get(), Status::Ok);
}

// While softibd is busy; what comes after them finds the new state.
TEST_P(QueuePairStates, MovesToInitAndRtsWaitForNobody) {
  IB_ONCE();
  const Qp peer = b->new_qp();
  for (const QpType type : {QpType::Rc, QpType::Uc, QpType::Ud}) {
    const Qp qp = make(*a, type);
    const auto moves = [&](QpState from, QpState to) {
      std::promise<void> release;
      std::thread blocker(
          [&] { TestFabric::shared().daemon().on_loop([&] { release.get_future().wait(); }); });
      auto moved = std::async(std::launch::async, [&] {
        return qp.try_modify(required(type, from, to), attributes(qp, peer, to));
      });
      EXPECT_EQ(moved.wait_for(20s), std::future_status::ready) << "softibd answers nobody";
      release.set_value();
      blocker.join();
      EXPECT_EQ(moved.get(), Status::Ok) << a->reason();
    };
    moves(QpState::Reset, QpState::Init);
    qp.receive(1, {});
    EXPECT_EQ(qp.try_modify(required(type, QpState::Init, QpState::Rtr), rtr_attributes(qp, peer)),
              Status::Ok)
        << a->reason();
    moves(QpState::Rtr, QpState::Rts);
    EXPECT_EQ(qp.state(), QpState::Rts);
    EXPECT_EQ(qp.query().attr.sq_psn, rts_attributes().sq_psn);
  }
}

// No call that comes at once is refused because softibd has not made the move yet.
TEST_P(QueuePairStates, WhatComesAfterAMoveFindsItMade) {
  const Region room = b->region(64);
  const std::uint32_t address = a->new_address(a->path_to(*b));
  for (const QpType type : {QpType::Rc, QpType::Ud}) {
    const Qp to = b->new_qp({.type = type});
    const Qp from = a->new_qp({.type = type});
    const std::uint32_t to_rtr_mask = required(type, QpState::Init, QpState::Rtr);
    to_init(from, type);
    for (std::uint64_t i = 0; i < 50; ++i) {
      to_init(to, type);
      to.receive(i, {room.all()});
      EXPECT_EQ(to.try_modify(to_rtr_mask, rtr_attributes(to, from)), Status::Ok) << b->reason();
      EXPECT_EQ(from.try_modify(to_rtr_mask, rtr_attributes(from, to)), Status::Ok) << a->reason();
      Work work = send_work(i, {});
      if (type == QpType::Ud) {
        work.address = address;
        work.remote_qpn = to.qpn;
        work.remote_qkey = init_attributes().qkey;
      }
      to_rts(from, type);
      from.send(work);
      EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, i);
      EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, i);
      from.to(QpState::Reset);
      to.to(QpState::Reset);
      to_init(from, type);
    }
    EXPECT_EQ(from.try_destroy(), Status::Ok);
    EXPECT_EQ(to.try_destroy(), Status::Ok);
  }
}

TEST_P(QueuePairStates, AMoveToInitWithOtherAttributesIsMade) {
  IB_ONCE();
  const Qp qp = make(*a, QpType::Rc);
  const std::uint32_t mask = required(QpType::Rc, QpState::Reset, QpState::Init);
  const auto moves_to = [&](std::uint32_t access) {
    control::QpAttr attr = init_attributes();
    attr.access = access;
    EXPECT_EQ(qp.try_modify(mask, attr), Status::Ok) << a->reason();
    EXPECT_EQ(qp.query().attr.access, access);
  };
  moves_to(access::kRemoteWrite);
  moves_to(access::kRemoteRead);
  moves_to(access::kRemoteWrite);
  control::QpAttr other_port = init_attributes();
  other_port.access = access::kRemoteWrite;
  other_port.port = 2;
  EXPECT_EQ(qp.try_modify(mask, other_port), Status::Ok);
  EXPECT_EQ(qp.query().attr.port, 2u);
  other_port.port = 3;
  EXPECT_EQ(qp.try_modify(mask, other_port), Status::InvalidParameter);
  other_port.port = 2;
  other_port.pkey_index = 9999;
  EXPECT_EQ(qp.try_modify(mask, other_port), Status::InvalidParameter);
  EXPECT_EQ(qp.try_modify(mask | qp_attr::kQkey, init_attributes()), Status::InvalidParameter);
}

TEST_P(QueuePairStates, AccessFlagsOfTheLastMoveToInitHold) {
  IB_ONCE();
  const Qp qp = make(*a, QpType::Rc);
  const Qp peer = make(*b, QpType::Rc);
  const std::uint32_t mask = required(QpType::Rc, QpState::Reset, QpState::Init);
  const std::uint32_t to_rtr_mask = required(QpType::Rc, QpState::Init, QpState::Rtr);
  const auto moves_to_init = [&](std::uint32_t access) {
    control::QpAttr attr = init_attributes();
    attr.access = access;
    EXPECT_EQ(qp.try_modify(mask, attr), Status::Ok) << a->reason();
  };
  moves_to_init(access::kRemoteWrite);
  moves_to_init(access::kRemoteRead);
  control::QpAttr bad = rtr_attributes(qp, peer);
  bad.min_rnr_timer = 32;
  EXPECT_EQ(qp.try_modify(to_rtr_mask, bad), Status::InvalidParameter);
  EXPECT_EQ(qp.query().attr.access, access::kRemoteRead);
  moves_to_init(access::kRemoteWrite);
  EXPECT_EQ(qp.try_modify(to_rtr_mask, rtr_attributes(qp, peer)), Status::Ok) << a->reason();
  EXPECT_EQ(qp.query().attr.access, access::kRemoteWrite);
  qp.to(QpState::Reset);
  moves_to_init(access::kRemoteRead);
  moves_to_init(access::kRemoteWrite);
  control::QpAttr other = rtr_attributes(qp, peer);
  other.access = access::kRemoteAtomic;
  EXPECT_EQ(qp.try_modify(to_rtr_mask | qp_attr::kAccessFlags, other), Status::Ok);
  EXPECT_EQ(qp.query().attr.access, access::kRemoteAtomic);
  qp.to(QpState::Reset);
  moves_to_init(access::kRemoteRead);
  moves_to_init(access::kRemoteWrite);
  qp.to(QpState::Error);
  EXPECT_EQ(qp.query().attr.access, access::kRemoteWrite);
}

TEST_P(QueuePairStates, AMoveToInitFromAnotherStateIsMade) {
  IB_ONCE();
  const Qp qp = make(*a, QpType::Rc);
  const std::uint32_t mask = required(QpType::Rc, QpState::Reset, QpState::Init);
  to_init(qp, QpType::Rc);
  qp.to(QpState::Error);
  EXPECT_EQ(qp.try_modify(mask, init_attributes()), Status::InvalidParameter);
  qp.to(QpState::Reset);
  EXPECT_EQ(qp.try_modify(mask, init_attributes()), Status::Ok) << a->reason();
  EXPECT_EQ(qp.state(), QpState::Init);
  EXPECT_EQ(qp.query().attr.state, QpState::Init);
}

// --- Creation ---

TEST_P(QueuePairStates, CapabilitiesAreGrantedOrRefused) {
  IB_ONCE();
  QpSpec good;
  good.pd = a->pd();
  good.send_cq = a->cq().handle;
  good.recv_cq = a->cq().handle;
  Qp qp;
  EXPECT_EQ(a->try_qp(good, qp), Status::Ok);
  EXPECT_GE(qp.caps.max_send_wr, good.caps.max_send_wr);
  EXPECT_GE(qp.caps.max_recv_sge, good.caps.max_recv_sge);
  const auto refused = [&](void (*spoil)(QpSpec&)) {
    QpSpec bad = good;
    spoil(bad);
    EXPECT_EQ(a->try_qp(bad, qp), Status::InvalidParameter) << a->reason();
  };
  refused([](QpSpec& s) { s.caps.max_send_wr = 16385; });
  refused([](QpSpec& s) { s.caps.max_recv_wr = 16385; });
  refused([](QpSpec& s) { s.caps.max_send_sge = 31; });
  refused([](QpSpec& s) { s.caps.max_recv_sge = 31; });
  refused([](QpSpec& s) { s.caps.max_inline = 1025; });
  refused([](QpSpec& s) { s.pd = kNoHandle; });
  refused([](QpSpec& s) { s.send_cq = kNoHandle; });
  refused([](QpSpec& s) { s.recv_cq = kNoHandle; });
  refused([](QpSpec& s) { s.type = static_cast<QpType>(77); });
}

TEST_P(QueuePairStates, ThingsThatAreUsedCannotBeDestroyed) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  EXPECT_EQ(a->destroy(Kind::Pd, a->pd()), Status::DeviceBusy);
  EXPECT_EQ(a->destroy(Kind::Cq, a->cq().handle), Status::DeviceBusy);
  EXPECT_FALSE(a->reason().empty());
  EXPECT_EQ(qa.try_destroy(), Status::Ok);
  EXPECT_EQ(a->destroy(Kind::Pd, a->pd()), Status::DeviceBusy);  // the region is left
  EXPECT_EQ(a->destroy(Kind::Region, ma.handle), Status::Ok);
  EXPECT_EQ(a->destroy(Kind::Pd, a->pd()), Status::Ok);
  EXPECT_EQ(a->destroy(Kind::Cq, a->cq().handle), Status::Ok);
}

TEST_P(QueuePairStates, NumbersOfDestroyedQueuePairsDoNotComeBackSoon) {
  IB_ONCE();
  std::uint32_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const Qp qp = a->new_qp();
    EXPECT_NE(qp.qpn, last);
    last = qp.qpn;
    EXPECT_EQ(qp.try_destroy(), Status::Ok);
  }
}

}  // namespace
}  // namespace ib::conformance
