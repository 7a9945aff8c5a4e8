// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// True loopback: a queue pair that is connected to itself, and two of one client, with one
// protection domain and with two. The client is its own peer, so its keys are found in private
// memory and its requests and their receives share their locks.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <array>

namespace ib::conformance {
namespace {

enum class How { Self, OneDomain, TwoDomains };
constexpr std::array kEveryHow{How::Self, How::OneDomain, How::TwoDomains};

class Loopback : public VerbsTest {
 protected:
  // Queue pairs and memory of the requester (qa, ma) and of the responder (qb, mb).
  void connect_as(How how, QpType type = QpType::Rc) {
    Connection with;
    with.timeout = 8;
    with.retry_cnt = 2;
    qa = a->new_qp({type});
    ma = a->region(65536);
    if (how == How::Self) {
      qb = qa;
      mb = a->region(65536);
    } else {
      const std::uint32_t domain = how == How::OneDomain ? a->pd() : a->new_pd();
      QpSpec spec{type};
      spec.pd = domain;
      qb = a->new_qp(spec);
      mb = a->region(65536, kAllAccess, domain);
      to_init(qb, type, with);
      to_rtr(qb, type, qa, with);
      to_rts(qb, type, with);
    }
    to_init(qa, type, with);
    to_rtr(qa, type, qb, with);
    to_rts(qa, type, with);
  }
  // Both completions of one message are in the only queue, in any order.
  void expect_both() {
    const auto done = a->cq().wait(2);
    ASSERT_EQ(done.size(), 2u);
    for (const Completion& one : done) EXPECT_EQ(one.status, WcStatus::Success);
  }
  void expect_one(WcStatus status = WcStatus::Success) { (void)a->cq().one(status); }
  Region ma;
  Region mb;
};
INSTANTIATE_TEST_SUITE_P(Verbs, Loopback,
                         ::testing::Values(Setting{"adopted", Where::SameProcess},
                                           Setting{"process_vm", Where::SameProcess},
                                           Setting{"bounce", Where::SameProcess}),
                         setting_name);

TEST_P(Loopback, EveryOperationWorks) {
  for (const How how : kEveryHow) {
    SCOPED_TRACE(static_cast<int>(how));
    connect_as(how);
    for (const std::uint32_t bytes : {1u, 8u, 64u, 65u, 4096u, 65536u}) {
      ma.fill(bytes);
      mb.fill(1);
      qb.receive(1, {mb.sge(0, bytes)});
      qa.send(send_work(2, {ma.sge(0, bytes)}));
      expect_both();
      EXPECT_EQ(mb.mismatches(bytes, 0, bytes), 0u);
      mb.fill(1);
      qa.send(rdma(WrOpcode::RdmaWrite, 3, {ma.sge(0, bytes)}, mb));
      expect_one();
      EXPECT_EQ(mb.mismatches(bytes, 0, bytes), 0u);
      ma.fill(2);
      qa.send(rdma(WrOpcode::RdmaRead, 4, {ma.sge(0, bytes)}, mb));
      expect_one();
      EXPECT_EQ(ma.mismatches(bytes, 0, bytes), 0u);
    }
    mb.set_word(8, 40);
    Work add = rdma(WrOpcode::AtomicFetchAdd, 5, {ma.sge(0, 8)}, mb, 8);
    add.compare_add = 2;
    qa.send(add);
    expect_one();
    EXPECT_EQ(ma.word(0), 40u);
    EXPECT_EQ(mb.word(8), 42u);
    Work swap = rdma(WrOpcode::AtomicCmpSwap, 6, {ma.sge(0, 8)}, mb, 8);
    swap.compare_add = 42;
    swap.swap = 7;
    qa.send(swap);
    expect_one();
    EXPECT_EQ(mb.word(8), 7u);
    qb.receive(7, {});
    qa.send(rdma(WrOpcode::RdmaWriteWithImm, 8, {ma.sge(0, 64)}, mb));
    expect_both();
  }
}

TEST_P(Loopback, ARegionMayBeBothEnds) {
  connect_as(How::Self);
  ma.fill(5);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 4096)}, ma));
  expect_one();
  EXPECT_EQ(ma.mismatches(5, 0, 65536), 0u);
}

TEST_P(Loopback, ASendWaitsForItsOwnReceive) {
  for (const How how : kEveryHow) {
    SCOPED_TRACE(static_cast<int>(how));
    connect_as(how);
    ma.fill(9);
    qa.send(send_work(2, {ma.sge(0, 1000)}));
    EXPECT_TRUE(a->cq().stays_empty());
    qb.receive(1, {mb.sge(0, 1000)});
    expect_both();
    EXPECT_EQ(mb.mismatches(9, 0, 1000), 0u);
  }
}

TEST_P(Loopback, TheProtectionDomainOfTheAnsweringEndCounts) {
  const std::uint32_t elsewhere = a->new_pd();
  for (const How how : kEveryHow) {
    for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
      SCOPED_TRACE(static_cast<int>(how));
      connect_as(how);
      // With two domains, a region of the requester's domain is foreign to the responder.
      const Region foreign = how == How::TwoDomains ? ma : a->region(4096, kAllAccess, elsewhere);
      foreign.fill(1);
      const Region clean = a->region(4096);
      clean.fill(2);
      qa.send(rdma(opcode, 1, {clean.sge(0, 64)}, foreign));
      const Completion failed = a->cq().one(WcStatus::RemAccessErr);
      EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::RemoteKeyOtherPd));
      EXPECT_EQ(foreign.mismatches(1, 0, 64), 0u);
      EXPECT_EQ(clean.mismatches(2, 0, 64), 0u);
      EXPECT_TRUE(qb.reaches(QpState::Error));
    }
    connect_as(how);
    const Region foreign = how == How::TwoDomains ? ma : a->region(4096, kAllAccess, elsewhere);
    qb.receive(1, {foreign.sge(0, 64)});
    qa.send(send_work(2, {ma.sge(0, 64)}));
    const auto done = a->cq().wait(2);
    ASSERT_EQ(done.size(), 2u);
    for (const Completion& one : done) {
      EXPECT_EQ(one.status, one.wr_id == 1 ? WcStatus::LocProtErr : WcStatus::RemOpErr);
    }
  }
}

TEST_P(Loopback, AnErrorFlushesWhatIsLeftAtBothEnds) {
  for (const How how : kEveryHow) {
    SCOPED_TRACE(static_cast<int>(how));
    connect_as(how);
    qb.receive(1, {});
    Work bad = rdma(WrOpcode::RdmaWrite, 2, {ma.sge(0, 8)}, mb);
    bad.rkey ^= 0x55;
    qa.send(bad);
    qa.send(send_work(3, {}));
    const auto done = a->cq().wait(3);
    ASSERT_EQ(done.size(), 3u);
    for (const Completion& one : done) {
      EXPECT_EQ(one.status, one.wr_id == 2 ? WcStatus::RemAccessErr : WcStatus::WrFlushErr);
    }
  }
}

TEST_P(Loopback, UnreliableConnectionsToo) {
  for (const How how : kEveryHow) {
    connect_as(how, QpType::Uc);
    ma.fill(3);
    qb.receive(1, {mb.sge(0, 5000)});
    qa.send(send_work(2, {ma.sge(0, 5000)}));
    expect_both();
    EXPECT_EQ(mb.mismatches(3, 0, 5000), 0u);
  }
}

}  // namespace
}  // namespace ib::conformance
