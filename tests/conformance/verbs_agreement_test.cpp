// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two ends of a connection must be given the same packet sequence numbers [IBA1 9.7.1, 9.8.2.2]
// and path MTU [IBA1 9.7.4.1.6]. A mistake ends as on adapters.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

class Agreement : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    ma = a->region(16384);
    mb = b->region(16384);
    ma.fill(1);
    mb.fill(2);
  }
  static Connection hasty() {
    Connection with;
    with.timeout = 8;  // 1 ms
    with.retry_cnt = 2;
    return with;
  }
  // Connects new queue pairs, each end with its own attributes.
  void make_pair_of(QpType type, const Connection& at_a, const Connection& at_b) {
    qa = a->new_qp({type});
    qb = b->new_qp({type});
    bring_up(qa, type, qb, at_a);
    bring_up(qb, type, qa, at_b);
  }
  static void bring_up(const Qp& qp, QpType type, const Qp& peer, const Connection& with) {
    to_init(qp, type, with);
    to_rtr(qp, type, peer, with);
    to_rts(qp, type, with);
  }
  // Sends one message of this kind from A to B or from B to A. Returns its completion.
  Completion transfer(bool from_a, WrOpcode opcode, std::uint32_t bytes) {
    const Qp& from = from_a ? qa : qb;
    const Qp& to = from_a ? qb : qa;
    const Region& mine = from_a ? ma : mb;
    const Region& theirs = from_a ? mb : ma;
    const bool sends = opcode == WrOpcode::Send;
    if (sends) to.receive(900, {theirs.sge(0, 16384)});
    Work work =
        sends ? send_work(1, {mine.sge(0, bytes)}) : rdma(opcode, 1, {mine.sge(0, bytes)}, theirs);
    from.send(work);
    const Completion done = from.side->cq().one();
    if (sends && done.status == WcStatus::Success) (void)to.side->cq().one(WcStatus::Success);
    return done;
  }
  Region ma;
  Region mb;
};
IB_EVERY_SETTING(Agreement);

TEST_P(Agreement, AWrongPsnExhaustsTheRetriesOfWhoeverSendsWithIt) {
  for (const std::uint32_t expected : {0xffffffu, 0xfffffdu, 0u, 0x7ffffeu}) {
    SCOPED_TRACE(expected);
    Connection at_b = hasty();
    at_b.rq_psn = expected;
    make_pair_of(QpType::Rc, hasty(), at_b);
    EXPECT_EQ(transfer(false, WrOpcode::Send, 64).status, WcStatus::Success) << "that way is right";
    qb.receive(7, {mb.sge(0, 100)});
    qa.send(send_work(1, {ma.sge(0, 64)}));
    const Completion failed = a->cq().one(WcStatus::RetryExcErr);
    EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::PsnMismatch));
    EXPECT_EQ(mb.mismatches(2, 64, 1000, 64), 0u) << "nothing came";
    EXPECT_TRUE(b->cq().stays_empty()) << "the other end does not hear of it";
    EXPECT_EQ(qb.state(), QpState::Rts);
    for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
      make_pair_of(QpType::Rc, hasty(), at_b);
      const Completion done = transfer(true, opcode, 64);
      EXPECT_EQ(done.status, WcStatus::RetryExcErr);
      EXPECT_EQ(done.vendor_err, static_cast<std::uint32_t>(Cause::PsnMismatch));
    }
  }
}

// The first message finds the mistake; so does the first message after a reset.
TEST_P(Agreement, PsnsCountAnewAfterAReset) {
  make_pair_of(QpType::Rc, hasty(), hasty());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(transfer(true, WrOpcode::RdmaWrite, 64).status, WcStatus::Success);
  }
  Connection other = hasty();
  other.sq_psn = 5;
  qa.to(QpState::Reset);
  bring_up(qa, QpType::Rc, qb, other);
  const Completion failed = transfer(true, WrOpcode::RdmaWrite, 64);
  EXPECT_EQ(failed.status, WcStatus::RetryExcErr);
  EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::PsnMismatch));
  qa.to(QpState::Reset);
  qb.to(QpState::Reset);
  Connection at_b = hasty();
  at_b.rq_psn = 5;
  bring_up(qa, QpType::Rc, qb, other);
  bring_up(qb, QpType::Rc, qa, at_b);
  EXPECT_EQ(transfer(true, WrOpcode::RdmaWrite, 64).status, WcStatus::Success);
  EXPECT_EQ(transfer(true, WrOpcode::Send, 16384).status, WcStatus::Success);
  qa.to(QpState::Sqd);  // SQD keeps the PSNs
  qa.to(QpState::Rts);
  EXPECT_EQ(transfer(true, WrOpcode::Send, 64).status, WcStatus::Success);
}

TEST_P(Agreement, AnUnreliableConnectionTakesThePsnThatComes) {
  Connection at_b = hasty();
  at_b.rq_psn = 17;
  make_pair_of(QpType::Uc, hasty(), at_b);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(transfer(true, WrOpcode::RdmaWrite, 64).status, WcStatus::Success);
    EXPECT_EQ(mb.mismatches(1, 0, 64), 0u);
    EXPECT_EQ(transfer(true, WrOpcode::Send, 9000).status, WcStatus::Success);
  }
}

TEST_P(Agreement, PathMtusThatDifferLetOnePacketPass) {
  Connection small = hasty();
  small.mtu = verbs::Mtu::B256;
  for (const bool a_is_small : {false, true}) {
    for (const WrOpcode opcode : {WrOpcode::Send, WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
      SCOPED_TRACE(static_cast<std::uint32_t>(opcode));
      make_pair_of(QpType::Rc, a_is_small ? small : hasty(), a_is_small ? hasty() : small);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(transfer(true, opcode, 8).status, WcStatus::Success);
        EXPECT_EQ(transfer(true, opcode, 256).status, WcStatus::Success);
      }
      const Completion failed = transfer(true, opcode, 257);
      const bool read = opcode == WrOpcode::RdmaRead;
      EXPECT_EQ(failed.status, read ? WcStatus::LocLenErr : WcStatus::RemInvReqErr);
      EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::MtuMismatch));
      EXPECT_TRUE(qa.reaches(QpState::Error));
      if (read) {
        EXPECT_EQ(qb.state(), QpState::Rts) << "it has answered";
        continue;
      }
      EXPECT_TRUE(qb.reaches(QpState::Error));
      if (opcode == WrOpcode::Send) {
        EXPECT_EQ(b->cq().one(WcStatus::LocLenErr).wr_id, 900u) << "the receive is used up";
        continue;
      }
      const auto event = b->event();
      ASSERT_TRUE(event.has_value());
      EXPECT_EQ(event->type, verbs::EventType::QpReqErr);
    }
  }
}

TEST_P(Agreement, PathMtusThatDifferLoseLongerUnreliableMessages) {
  Connection small = hasty();
  small.mtu = verbs::Mtu::B512;
  make_pair_of(QpType::Uc, small, hasty());
  EXPECT_EQ(transfer(true, WrOpcode::Send, 512).status, WcStatus::Success);
  mb.fill(2);
  EXPECT_EQ(transfer(true, WrOpcode::RdmaWrite, 513).status, WcStatus::Success);
  EXPECT_EQ(mb.mismatches(2, 0, 16384), 0u) << "it is lost";
  EXPECT_EQ(transfer(true, WrOpcode::RdmaWrite, 512).status, WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 0, 512), 0u);
}

}  // namespace
}  // namespace ib::conformance
