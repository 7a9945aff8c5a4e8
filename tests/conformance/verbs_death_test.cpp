// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that dies without cleaning up, and the results for other clients
// (docs/design/0003-death.md). tests/conformance/kill_test.cpp does the same many times at random
// moments.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

class Death : public VerbsTest {
 protected:
  static Connection impatient() {
    Connection with;
    with.timeout = 8;
    with.retry_cnt = 1;
    return with;
  }
  // The requester's retries and softibd's report of the death race to end outstanding requests.
  static bool is_end(WcStatus status) {
    return status == WcStatus::RetryExcErr || status == WcStatus::WrFlushErr;
  }
};
IB_EVERY_SETTING(Death);

TEST_P(Death, RequestsToADeadPeerExhaustTheirRetries) {
  make_pair(QpType::Rc, impatient());
  const Region ma = a->region(8192);
  const Region mb = b->region(8192);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 64)}, mb));
  (void)a->cq().one(WcStatus::Success);
  kill_b();
  qa.send(rdma(WrOpcode::RdmaWrite, 2, {ma.sge(0, 64)}, mb));
  qa.send(rdma(WrOpcode::RdmaWrite, 3, {ma.sge(0, 64)}, mb));
  // Until softibd has noticed the death, writes into the peer's pages may succeed.
  Completion last = a->cq().one();
  for (std::uint64_t id = 4; last.status == WcStatus::Success && id < 1'000'000; ++id) {
    qa.send(rdma(WrOpcode::RdmaWrite, id, {ma.sge(0, 64)}, mb));
    last = a->cq().one();
  }
  EXPECT_TRUE(is_end(last.status)) << static_cast<std::uint32_t>(last.status);
  EXPECT_TRUE(qa.reaches(QpState::Error));
}

TEST_P(Death, ARequestThatWaitsForADeadPeerEnds) {
  make_pair(QpType::Rc, impatient());  // rnr_retry 7: without limit while there is a peer
  qa.receive(7, {});
  qa.send(send_work(1, {}));
  qa.send(send_work(2, {}));
  EXPECT_TRUE(a->cq().stays_empty());
  kill_b();
  std::vector<std::uint64_t> sends;
  for (const Completion& ended : a->cq().wait(3)) {
    EXPECT_EQ(ended.status, ended.wr_id == 1 ? WcStatus::RetryExcErr : WcStatus::WrFlushErr);
    if (ended.wr_id != 7) sends.push_back(ended.wr_id);
  }
  EXPECT_EQ(sends, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(a->cq().stays_empty());
}

TEST_P(Death, AReceiverThatSendsNothingLearnsOfItToo) {
  make_pair(QpType::Rc, impatient());
  for (std::uint64_t i = 0; i < 3; ++i) qa.receive(i, {});
  kill_b();
  const auto flushed = a->cq().wait(3);
  ASSERT_EQ(flushed.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(flushed[i].wr_id, i);
    EXPECT_EQ(flushed[i].status, WcStatus::WrFlushErr);
  }
}

TEST_P(Death, WhatADeadPeerSentIsThere) {
  make_pair(QpType::Rc);
  const Region ma = a->region(8192);
  const Region mb = b->region(8192);
  mb.fill(1);
  qa.receive(1, {ma.sge(0, 3000)});
  qb.send(send_work(1, {mb.sge(0, 3000)}));
  (void)b->cq().one(WcStatus::Success);
  kill_b();
  EXPECT_EQ(a->cq().one(WcStatus::Success).byte_len, 3000u);
  EXPECT_EQ(ma.mismatches(1, 0, 3000), 0u);
}

TEST_P(Death, ASharedReceiveQueueOutlivesASender) {
  const Srq srq = a->new_srq();
  QpSpec spec;
  spec.srq = srq.handle;
  qa = a->new_qp(spec);
  qb = b->new_qp();
  connect(qa, qb, QpType::Rc);
  for (std::uint64_t i = 0; i < 4; ++i) srq.receive(i, {});
  qb.send(send_work(1, {}));
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 0u);
  kill_b();
  const std::unique_ptr<Side> c = new_side("C", GetParam().where);
  ASSERT_NE(c, nullptr);
  const Qp qac = a->new_qp(spec);
  const Qp qc = c->new_qp();
  connect(qac, qc, QpType::Rc);
  for (std::uint64_t i = 1; i < 4; ++i) {
    qc.send(send_work(i, {}));
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, i);
  }
  (void)c->expect(Command::DestroyAll);
}

TEST_P(Death, TheNextPairWorks) {
  for (int round = 0; round < 5; ++round) {
    const std::unique_ptr<Side> c = new_side("C", GetParam().where);
    ASSERT_NE(c, nullptr);
    const Qp mine = a->new_qp();
    const Qp theirs = c->new_qp();
    connect(mine, theirs, QpType::Rc, impatient());
    const Region ma = a->region(4096);
    const Region mc = c->region(4096);
    ma.fill(static_cast<std::uint64_t>(round));
    theirs.receive(1, {mc.all()});
    mine.send(send_work(2, {ma.all()}));
    (void)a->cq().one(WcStatus::Success);
    (void)c->cq().one(WcStatus::Success);
    EXPECT_EQ(mc.mismatches(static_cast<std::uint64_t>(round), 0, 4096), 0u);
    c->channel().kill();
    EXPECT_EQ(mine.try_destroy(), Status::Ok);
  }
}

TEST_P(Death, TheDeadAreForgottenByMulticastGroups) {
  for (const auto& [side, qp] : {std::pair{a.get(), &qa}, {b.get(), &qb}}) {
    *qp = side->new_qp({QpType::Ud});
    to_init(*qp, QpType::Ud);
    qp->to(QpState::Rtr);
    to_rts(*qp, QpType::Ud);
    verbs::Gid group{0xff, 0x12};
    (void)side->expect(Command::AttachGroup,
                       Message().put(qp->handle).put(group).put(std::uint16_t{0xc001}));
  }
  kill_b();
  const Region ma = a->region(4096);
  qa.receive(1, {ma.sge(0, 100)});
  verbs::AddressVector av = a->path_to(*a);
  av.is_global = 1;
  av.dgid = {0xff, 0x12};
  av.dlid = 0xc001;
  Work work = send_work(2, {ma.sge(200, 8)});
  work.address = a->new_address(av);
  work.remote_qpn = 0xffffff;
  work.remote_qkey = 0x11111111;
  qa.send(work);
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  verbs::Gid group{0xff, 0x12};
  (void)a->expect(Command::DetachGroup,
                  Message().put(qa.handle).put(group).put(std::uint16_t{0xc001}));
}

// A peer that hangs must fail its test in time, with the name of the missing answer.
TEST(Deadline, APeerThatNeverAnswersIsNotWaitedForForEver) {
  HostSettings settings;
  settings.wrapper = {"/bin/sh", "-c", "exec sleep 1000"};  // never becomes conformance_peer
  settings.time_limit_ms = 100;
  std::string reason;
  EXPECT_EQ(make_process_channel(settings, reason), nullptr);
  EXPECT_EQ(reason, "no answer of conformance_peer (to be attached) came in 100 ms; it was killed");
}

}  // namespace
}  // namespace ib::conformance
