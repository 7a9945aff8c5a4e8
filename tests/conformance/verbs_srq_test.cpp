// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared receive queues and XRC [IBA1 10.2.9, annex A14].
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::conformance {
namespace {

class SharedReceive : public VerbsTest {
 protected:
  // A queue pair of B that takes its receives from `srq`, connected to one of A.
  void attach(const Srq& srq, Qp& at_a, Qp& at_b, const Connection& with = {}) {
    QpSpec spec;
    spec.srq = srq.handle;
    at_a = a->new_qp();
    at_b = b->new_qp(spec);
    connect(at_a, at_b, QpType::Rc, with);
  }
};
IB_EVERY_SETTING(SharedReceive);

TEST_P(SharedReceive, SeveralQueuePairsTakeFromOneQueueInOrder) {
  const Srq srq = b->new_srq();
  Qp at_a[3];
  Qp at_b[3];
  for (int i = 0; i < 3; ++i) attach(srq, at_a[i], at_b[i]);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t i = 0; i < 30; ++i) srq.receive(i, {mb.sge(i * 64, 64)});
  for (std::uint64_t i = 0; i < 30; ++i) {
    ma.set_word(0, i * 3);
    at_a[i % 3].send(send_work(i, {ma.sge(0, 8)}));
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, i);
    const Completion received = b->cq().one(WcStatus::Success);
    EXPECT_EQ(received.wr_id, i);
    EXPECT_EQ(received.qpn, at_b[i % 3].qpn);
    EXPECT_EQ(mb.word(i * 64), i * 3);
  }
}

TEST_P(SharedReceive, AQueuePairWithOneHasNoReceiveQueueOfItsOwn) {
  const Srq srq = b->new_srq();
  attach(srq, qa, qb);
  EXPECT_EQ(qb.try_receive(1, {}), Status::InvalidParameter);
}

TEST_P(SharedReceive, AnEmptyQueueMakesSendersWait) {
  const Srq srq = b->new_srq();
  attach(srq, qa, qb);
  qa.send(send_work(1, {}));
  EXPECT_TRUE(a->cq().stays_empty());
  srq.receive(5, {});
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u);
}

TEST_P(SharedReceive, AnEmptyQueueExhaustsTheRnrRetries) {
  const Srq srq = b->new_srq();
  Connection with;
  with.rnr_retry = 1;
  attach(srq, qa, qb, with);
  qa.send(send_work(1, {}));
  EXPECT_EQ(a->cq().one(WcStatus::RnrRetryExcErr).vendor_err,
            static_cast<std::uint32_t>(Cause::NoReceive));
}

TEST_P(SharedReceive, ItIsFullWhenItsReceivesAreNotPolled) {
  SrqSpec spec;
  spec.max_wr = 4;
  const Srq srq = b->new_srq(spec);
  attach(srq, qa, qb);
  for (std::uint64_t i = 0; i < 4; ++i) srq.receive(i, {});
  EXPECT_EQ(srq.try_receive(9, {}), Status::LimitExceeded);
  qa.send(send_work(1, {}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(srq.try_receive(9, {}), Status::LimitExceeded);
  (void)b->cq().one(WcStatus::Success);
  EXPECT_EQ(srq.try_receive(9, {}), Status::Ok);
}

TEST_P(SharedReceive, TooManyElementsAreRefused) {
  SrqSpec spec;
  spec.max_sge = 2;
  const Srq srq = b->new_srq(spec);
  const Region mb = b->region(4096);
  EXPECT_EQ(srq.try_receive(9, std::vector<Sge>(3, mb.sge(0, 1))), Status::InvalidParameter);
}

TEST_P(SharedReceive, TheLimitEventComesOnceUntilItIsArmedAgain) {
  SrqSpec spec;
  spec.limit = 3;
  spec.cookie = 0x5151;
  const Srq srq = b->new_srq(spec);
  attach(srq, qa, qb);
  for (std::uint64_t i = 0; i < 8; ++i) srq.receive(i, {});
  const auto send_one = [this] {
    qa.send(send_work(1, {}));
    (void)a->cq().one(WcStatus::Success);
    (void)b->cq().one(WcStatus::Success);
  };
  for (int i = 0; i < 5; ++i) send_one();  // 3 are left: not below the limit
  EXPECT_TRUE(b->no_event());
  send_one();
  const auto event = b->event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, verbs::EventType::SrqLimitReached);
  EXPECT_EQ(event->object, control::EventObject::Srq);
  EXPECT_EQ(event->cookie, 0x5151u);
  send_one();
  EXPECT_TRUE(b->no_event());
  control::ModifySrqIn in;
  in.mask = 2;
  in.limit = 5;
  Reply modified = b->expect(Command::ModifySrq, Message().put(srq.handle).put(in));
  EXPECT_EQ(modified.out.take<control::SrqOut>().limit, 5u);
  send_one();  // 0 are left
  EXPECT_TRUE(b->event().has_value());
}

TEST_P(SharedReceive, LimitsAreCheckedAndResizingIsNotSupported) {
  SrqSpec spec;
  spec.max_wr = 16;
  const Srq srq = b->new_srq(spec);
  control::ModifySrqIn in;
  in.mask = 2;
  in.limit = 17;
  EXPECT_EQ(b->call(Command::ModifySrq, Message().put(srq.handle).put(in)).status,
            Status::InvalidParameter);
  in.mask = 1;
  in.max_wr = 32;
  EXPECT_EQ(b->call(Command::ModifySrq, Message().put(srq.handle).put(in)).status,
            Status::NotSupported);
  Reply query = b->expect(Command::QuerySrq, Message().put(srq.handle));
  const auto out = query.out.take<control::SrqOut>();
  EXPECT_EQ(out.max_wr, 16u);
  EXPECT_EQ(out.limit, 0u);
}

TEST_P(SharedReceive, ItIsBusyWhileAQueuePairUsesIt) {
  const Srq srq = b->new_srq();
  attach(srq, qa, qb);
  EXPECT_EQ(b->destroy(Kind::Srq, srq.handle), Status::DeviceBusy);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Srq, srq.handle), Status::Ok);
}

TEST_P(SharedReceive, AQueuePairInErrorLeavesTheQueueAloneAndSaysWhenItIsDone) {
  const Srq srq = b->new_srq();
  QpSpec spec;
  spec.srq = srq.handle;
  spec.cookie = 0x77;
  qa = a->new_qp();
  qb = b->new_qp(spec);
  connect(qa, qb, QpType::Rc);
  Qp other_a;
  Qp other_b;
  attach(srq, other_a, other_b);
  for (std::uint64_t i = 0; i < 4; ++i) srq.receive(i, {});
  qb.to(QpState::Error);
  const auto event = b->event();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, verbs::EventType::QpLastWqeReached);
  EXPECT_EQ(event->cookie, 0x77u);
  EXPECT_TRUE(b->cq().stays_empty());
  other_a.send(send_work(1, {}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 0u);
}

TEST_P(SharedReceive, ATooSmallReceiveFailsItsQueuePairOnly) {
  const Srq srq = b->new_srq();
  attach(srq, qa, qb);
  Qp other_a;
  Qp other_b;
  attach(srq, other_a, other_b);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  srq.receive(1, {mb.sge(0, 10)});
  srq.receive(2, {mb.sge(0, 100)});
  qa.send(send_work(5, {ma.sge(0, 11)}));
  (void)a->cq().one(WcStatus::RemInvReqErr);
  const Completion failed = b->cq().one(WcStatus::LocLenErr);
  EXPECT_EQ(failed.wr_id, 1u);
  EXPECT_EQ(failed.qpn, qb.qpn);
  EXPECT_TRUE(qb.reaches(QpState::Error));
  other_a.send(send_work(6, {ma.sge(0, 11)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 2u);
}

TEST_P(SharedReceive, ItsProtectionDomainCountsForTheReceives) {
  SrqSpec spec;
  spec.pd = b->new_pd();
  const Srq srq = b->new_srq(spec);
  attach(srq, qa, qb);
  const Region ma = a->region(4096);
  const Region in_srq_pd = b->region(4096, kAllAccess, spec.pd);
  const Region in_qp_pd = b->region(4096);
  ma.fill(1);
  srq.receive(1, {in_srq_pd.all()});
  srq.receive(2, {in_qp_pd.all()});
  qa.send(send_work(5, {ma.sge(0, 3000)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
  EXPECT_EQ(in_srq_pd.mismatches(1, 0, 3000), 0u);
  qa.send(send_work(6, {ma.sge(0, 3000)}));
  EXPECT_EQ(b->cq().one(WcStatus::LocProtErr).wr_id, 2u);
}

TEST_P(SharedReceive, DatagramsTakeFromItToo) {
  const Srq srq = b->new_srq();
  QpSpec spec;
  spec.type = QpType::Ud;
  qa = a->new_qp(spec);
  spec.srq = srq.handle;
  qb = b->new_qp(spec);
  for (const Qp& qp : {qa, qb}) {
    to_init(qp, QpType::Ud);
    qp.to(QpState::Rtr);
    to_rts(qp, QpType::Ud);
  }
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  ma.fill(1);
  srq.receive(3, {mb.sge(0, 500)});
  Work work = send_work(1, {ma.sge(0, 400)});
  work.address = a->new_address(a->path_to(*b));
  work.remote_qpn = qb.qpn;
  work.remote_qkey = 0x11111111;
  qa.send(work);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.wr_id, 3u);
  EXPECT_EQ(received.byte_len, 440u);
  EXPECT_EQ(mb.mismatches(1, 40, 400), 0u);
}

TEST_P(SharedReceive, ReceivesOfADestroyedQueuePairComeBack) {
  SrqSpec spec;
  spec.max_wr = 2;
  const Srq srq = b->new_srq(spec);
  attach(srq, qa, qb);
  srq.receive(1, {});
  srq.receive(2, {});
  qa.send(send_work(1, {}));
  qa.send(send_work(2, {}));
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);  // with its completions unpolled
  EXPECT_TRUE(b->cq().stays_empty());
  EXPECT_EQ(srq.try_receive(3, {}), Status::Ok);
  EXPECT_EQ(srq.try_receive(4, {}), Status::Ok);
}

// --- XRC ---

class Xrc : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    xrcd = b->new_xrcd({});
    srq = xrc_srq(*b, xrcd);
    QpSpec target;
    target.type = QpType::XrcRecv;
    target.xrcd = xrcd;
    qa = a->new_qp({QpType::XrcSend});
    qb = b->new_qp(target);
    connect(qa, qb, QpType::XrcSend);
  }
  static Srq xrc_srq(Side& side, std::uint32_t domain, std::optional<std::uint32_t> pd = {}) {
    SrqSpec spec;
    spec.type = verbs::SrqType::Xrc;
    spec.xrcd = domain;
    spec.cq = side.cq().handle;
    if (pd) spec.pd = *pd;
    return side.new_srq(spec);
  }
  Work to_srq(Work work, const Srq& target) const {
    work.remote_srqn = target.srqn;
    return work;
  }
  std::uint32_t xrcd = kNoHandle;
  Srq srq;
};
IB_EVERY_SETTING(Xrc);

TEST_P(Xrc, ASendNamesTheSharedReceiveQueue) {
  const Srq second = xrc_srq(*b, xrcd);
  const Region ma = a->region(4096);
  const Region mb = b->region(8192);
  ma.fill(1);
  srq.receive(1, {mb.sge(0, 4096)});
  second.receive(2, {mb.sge(4096, 4096)});
  qa.send(to_srq(send_work(5, {ma.sge(0, 3000)}), second));
  (void)a->cq().one(WcStatus::Success);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.wr_id, 2u);
  EXPECT_EQ(received.byte_len, 3000u);
  EXPECT_EQ(received.src_qp, qa.qpn);
  EXPECT_EQ(mb.mismatches(1, 4096, 3000, 0), 0u);
  qa.send(to_srq(send_work(6, {ma.sge(0, 8)}), srq));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
}

TEST_P(Xrc, AnUnknownSharedReceiveQueueIsRefused) {
  Work work = send_work(5, {});
  work.remote_srqn = srq.srqn ^ 0x400000;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::RemInvReqErr).wr_id, 5u);
  EXPECT_TRUE(qb.reaches(QpState::Error));
}

TEST_P(Xrc, ASharedReceiveQueueOfAnotherDomainIsRefused) {
  const Srq foreign = xrc_srq(*b, b->new_xrcd({}));
  foreign.receive(1, {});
  qa.send(to_srq(send_work(5, {}), foreign));
  EXPECT_EQ(a->cq().one(WcStatus::RemInvReqErr).wr_id, 5u);
}

TEST_P(Xrc, RdmaAndAtomicsUseTheProtectionDomainOfTheSharedReceiveQueue) {
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  ma.fill(1);
  mb.fill(2);
  qa.send(to_srq(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 1000)}, mb), srq));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 0, 1000), 0u);
  qa.send(to_srq(rdma(WrOpcode::RdmaRead, 2, {ma.sge(2048, 1000)}, mb, 1000), srq));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(ma.mismatches(2, 2048, 1000, 1000), 0u);
  mb.set_word(2048, 5);
  Work add = to_srq(rdma(WrOpcode::AtomicFetchAdd, 3, {ma.sge(0, 8)}, mb, 2048), srq);
  add.compare_add = 6;
  qa.send(add);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.word(2048), 11u);
}

TEST_P(Xrc, AKeyOfAnotherProtectionDomainIsRefused) {
  const Region ma = a->region(4096);
  const Region other = b->region(4096, kAllAccess, b->new_pd());
  qa.send(to_srq(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 8)}, other), srq));
  EXPECT_EQ(a->cq().one(WcStatus::RemAccessErr).vendor_err,
            static_cast<std::uint32_t>(Cause::RemoteKeyOtherPd));
}

TEST_P(Xrc, WriteWithImmediateTakesFromTheNamedQueue) {
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  srq.receive(4, {});
  Work work = to_srq(rdma(WrOpcode::RdmaWriteWithImm, 1, {ma.sge(0, 100)}, mb), srq);
  work.imm = 9;
  qa.send(work);
  (void)a->cq().one(WcStatus::Success);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.opcode, WcOpcode::RecvRdmaWithImm);
  EXPECT_EQ(received.wr_id, 4u);
  EXPECT_EQ(received.imm, 9u);
}

TEST_P(Xrc, ATargetCannotSend) {
  EXPECT_EQ(qb.try_send(send_work(1, {})), Status::InvalidState);
  EXPECT_EQ(qb.try_receive(1, {}), Status::InvalidParameter);
}

TEST_P(Xrc, AnEmptyQueueMakesTheSenderWait) {
  qa.send(to_srq(send_work(1, {}), srq));
  EXPECT_TRUE(a->cq().stays_empty());
  srq.receive(4, {});
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 4u);
}

TEST_P(Xrc, ProcessesShareADomainAndItsTargets) {
  const control::OpenXrcdIn shared{4711, 12, 1, 0};
  const std::uint32_t at_b = b->new_xrcd(shared);
  const std::unique_ptr<Side> c = new_side("C", GetParam().where);
  ASSERT_NE(c, nullptr);
  const std::uint32_t at_c = c->new_xrcd(shared);
  const Srq of_c = xrc_srq(*c, at_c);
  QpSpec target;
  target.type = QpType::XrcRecv;
  target.xrcd = at_b;
  const Qp receiver = b->new_qp(target);
  const Qp sender = a->new_qp({QpType::XrcSend});
  connect(sender, receiver, QpType::XrcSend);
  const Region ma = a->region(4096);
  const Region mc = c->region(8192);
  ma.fill(1);
  for (const std::uint32_t size : {8u, 3000u}) {
    mc.fill(2);
    of_c.receive(4, {mc.sge(0, 4096)});
    sender.send(to_srq(send_work(1, {ma.sge(0, size)}), of_c));
    (void)a->cq().one(WcStatus::Success);
    const Completion received = c->cq().one(WcStatus::Success);
    EXPECT_EQ(received.wr_id, 4u);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(mc.mismatches(1, 0, size), 0u);
  }
  sender.send(to_srq(rdma(WrOpcode::RdmaWrite, 2, {ma.sge(0, 100)}, mc, 4096), of_c));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mc.mismatches(1, 4096, 100, 0), 0u);
  // C opens B's target, which stays alive when B destroys it.
  Reply opened =
      c->expect(Command::OpenQp, Message().put(at_c).put(receiver.qpn).put(std::uint64_t{1}));
  EXPECT_EQ(receiver.try_destroy(), Status::Ok);
  of_c.receive(5, {mc.sge(0, 4096)});
  sender.send(to_srq(send_work(3, {ma.sge(0, 64)}), of_c));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(c->cq().one(WcStatus::Success).wr_id, 5u);
  (void)c->expect(Command::DestroyAll);
}

TEST_P(Xrc, ADomainIsBusyWhileItIsUsed) {
  EXPECT_EQ(b->destroy(Kind::Xrcd, xrcd), Status::DeviceBusy);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Xrcd, xrcd), Status::DeviceBusy);
  EXPECT_EQ(b->destroy(Kind::Srq, srq.handle), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Xrcd, xrcd), Status::Ok);
}

}  // namespace
}  // namespace ib::conformance
