// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unreliable connections: the sender does not notice errors at the peer; local errors stop its send
// queue in SQE [IBA1 9.8.2, 10.3.1.7].
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

class Uc : public VerbsTest {
 protected:
  // Checks that a good message still gets through: a dropped message has not blocked the
  // connection.
  void expect_alive(const Region& ma, const Region& mb) {
    ma.fill(77, 0, 64);
    qb.receive(1000, {mb.sge(0, 64)});
    qa.send(send_work(1001, {ma.sge(0, 64)}));
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 1001u);
    EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1000u);
    EXPECT_EQ(mb.mismatches(77, 0, 64), 0u);
  }
};
IB_EVERY_SETTING(Uc);

TEST_P(Uc, SendsAndWritesArrive) {
  make_pair(QpType::Uc);
  const Region ma = a->region(16384);
  const Region mb = b->region(16384);
  ma.fill(1);
  for (const std::uint32_t size : {0u, 1u, 64u, 65u, 4096u, 10001u}) {
    mb.fill(2, 0, size + 64);
    qb.receive(size, {mb.sge(16, size)});
    Work send = send_work(size, {ma.sge(0, size)}, WrOpcode::SendWithImm);
    send.imm = size;
    qa.send(send);
    (void)a->cq().one(WcStatus::Success);
    const Completion received = b->cq().one(WcStatus::Success);
    EXPECT_EQ(received.byte_len, size);
    EXPECT_EQ(received.imm, size);
    EXPECT_EQ(mb.mismatches(1, 16, size), 0u);
    EXPECT_EQ(mb.mismatches(2, 0, 16), 0u);
    mb.fill(2, 0, size + 64);
    qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, size)}, mb, 3));
    (void)a->cq().one(WcStatus::Success);
    EXPECT_EQ(mb.mismatches(1, 3, size), 0u);
    EXPECT_EQ(mb.mismatches(2, 3 + size, 16, 3 + size), 0u);
  }
  qb.receive(5, {});
  Work with_imm = rdma(WrOpcode::RdmaWriteWithImm, 6, {ma.sge(0, 100)}, mb, 0);
  with_imm.imm = 0x99;
  qa.send(with_imm);
  (void)a->cq().one(WcStatus::Success);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.opcode, WcOpcode::RecvRdmaWithImm);
  EXPECT_EQ(received.imm, 0x99u);
}

TEST_P(Uc, WhatFindsNoReceiveIsLost) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.send(send_work(1, {ma.sge(0, 8)}));
  (void)a->cq().one(WcStatus::Success);
  qa.send(rdma(WrOpcode::RdmaWriteWithImm, 2, {ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::Success);
  qb.receive(1, {mb.sge(0, 64)});
  EXPECT_TRUE(b->cq().stays_empty());
  qa.send(send_work(3, {ma.sge(0, 8)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
}

TEST_P(Uc, WhatDoesNotFitIsLost) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  mb.fill(4);
  qb.receive(1, {mb.sge(0, 64)});
  qa.send(send_work(1, {ma.sge(0, 65)}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_TRUE(b->cq().stays_empty());
  EXPECT_EQ(mb.mismatches(4, 64, 100, 64), 0u);
  qa.send(send_work(2, {ma.sge(0, 64)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
}

TEST_P(Uc, AWriteWithABadRemoteKeyIsLost) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  const Region read_only = b->region(4096, access::kRemoteRead);
  const Region other_pd = b->region(4096, kAllAccess, b->new_pd());
  read_only.fill(1);
  other_pd.fill(1);
  Work unknown = rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 64)}, mb);
  unknown.rkey ^= 0x33;
  for (const Work& work : {unknown, rdma(WrOpcode::RdmaWrite, 2, {ma.sge(0, 64)}, read_only),
                           rdma(WrOpcode::RdmaWrite, 3, {ma.sge(0, 64)}, other_pd),
                           rdma(WrOpcode::RdmaWrite, 4, {ma.sge(0, 64)}, mb, 4096 - 63)}) {
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, work.wr_id);
  }
  EXPECT_EQ(read_only.mismatches(1, 0, 4096), 0u);
  EXPECT_EQ(other_pd.mismatches(1, 0, 4096), 0u);
  expect_alive(ma, mb);
}

TEST_P(Uc, AQueuePairWithoutRemoteWriteLosesWrites) {
  Connection with;
  with.access = 0;
  make_pair(QpType::Uc, with);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  mb.fill(1);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 64)}, mb));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 0, 4096), 0u);
  expect_alive(ma, mb);
}

TEST_P(Uc, APeerThatIsNotReadyLosesMessagesAndHoldsNobodyUp) {
  qa = a->new_qp({QpType::Uc});
  qb = b->new_qp({QpType::Uc});
  to_init(qa, QpType::Uc);
  to_init(qb, QpType::Uc);
  to_rtr(qa, QpType::Uc, qb);
  to_rts(qa, QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.send(send_work(1, {ma.sge(0, 64)}));
  (void)a->cq().one(WcStatus::Success);
  to_rtr(qb, QpType::Uc, qa);
  expect_alive(ma, mb);
}

TEST_P(Uc, APeerThatIsGoneLosesMessagesAndHoldsNobodyUp) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
  qa.send(send_work(1, {ma.sge(0, 64)}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(qa.state(), QpState::Rts);
}

TEST_P(Uc, ReadsAndAtomicsDoNotExist) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (const WrOpcode opcode : {WrOpcode::RdmaRead, WrOpcode::AtomicCmpSwap,
                                WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite}) {
    EXPECT_EQ(qa.try_send(rdma(opcode, 1, {ma.sge(0, 8)}, mb)), Status::InvalidParameter);
  }
  EXPECT_EQ(qa.try_send(flush(1, mb, 0, 8)), Status::InvalidParameter);
  EXPECT_TRUE(a->cq().drain().empty());
  expect_alive(ma, mb);
}

TEST_P(Uc, ABadReceiveBreaksOnlyTheReceiver) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096, access::kRemoteRead);
  qb.receive(1, {mb.sge(0, 64)});
  qb.receive(2, {mb.sge(0, 64)});
  qa.send(send_work(3, {ma.sge(0, 64)}));
  (void)a->cq().one(WcStatus::Success);
  const auto received = b->cq().wait(2);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].status, WcStatus::LocProtErr);
  EXPECT_EQ(received[0].wr_id, 1u);
  EXPECT_EQ(received[1].status, WcStatus::WrFlushErr);
  EXPECT_TRUE(qb.reaches(QpState::Error));
  EXPECT_EQ(qa.state(), QpState::Rts);
}

TEST_P(Uc, AnOwnErrorStopsTheSendQueueOnly) {
  make_pair(QpType::Uc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.receive(50, {ma.sge(0, 64)});
  Sge bad = ma.sge(0, 64);
  bad.lkey ^= 0x10;
  qa.send(send_work(1, {bad}));
  EXPECT_EQ(a->cq().one(WcStatus::LocProtErr).vendor_err,
            static_cast<std::uint32_t>(Cause::LocalKeyUnknown));
  EXPECT_EQ(qa.state(), QpState::Sqe);
  qa.send(send_work(2, {ma.sge(0, 64)}));
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 2u);
  qb.send(send_work(3, {mb.sge(0, 64)}));  // it still receives
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 50u);
  (void)b->cq().one(WcStatus::Success);
  qa.to(QpState::Rts);  // and sends again
  expect_alive(ma, mb);
}

}  // namespace
}  // namespace ib::conformance
