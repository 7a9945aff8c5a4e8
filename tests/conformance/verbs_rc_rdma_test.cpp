// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMA WRITE and READ, atomics and atomic write over reliable connections, without errors.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ib::conformance {
namespace {

class RcRdma : public VerbsTest {};
IB_EVERY_SETTING(RcRdma);

const auto kSizes = {1u,  2u,  3u,  4u,  7u,    8u,    9u,    15u,
                     16u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 70001u};

TEST_P(RcRdma, AWritePutsExactlyItsBytesAndTheOwnerSeesNoCompletion) {
  make_pair(QpType::Rc);
  const Region ma = a->region(128 * 1024);
  const Region mb = b->region(128 * 1024);
  ma.fill(1);
  for (const std::uint32_t size : kSizes) {
    for (const std::uint64_t shift : {0u, 3u}) {
      mb.fill(2, 0, size + 64);
      qa.send(rdma(WrOpcode::RdmaWrite, size, {ma.sge(shift, size)}, mb, 16 + shift));
      const Completion sent = a->cq().one(WcStatus::Success);
      EXPECT_EQ(sent.opcode, WcOpcode::RdmaWrite);
      EXPECT_EQ(sent.wr_id, size);
      EXPECT_EQ(mb.mismatches(1, 16 + shift, size, shift), 0u) << size;
      EXPECT_EQ(mb.mismatches(2, 0, 16 + shift), 0u) << size;
      EXPECT_EQ(mb.mismatches(2, 16 + shift + size, 16, 16 + shift + size), 0u) << size;
    }
  }
  EXPECT_TRUE(b->cq().drain().empty());
}

TEST_P(RcRdma, AReadFetchesExactlyItsBytes) {
  make_pair(QpType::Rc);
  const Region ma = a->region(128 * 1024);
  const Region mb = b->region(128 * 1024);
  mb.fill(1);
  for (const std::uint32_t size : kSizes) {
    for (const std::uint64_t shift : {0u, 3u}) {
      ma.fill(2, 0, size + 64);
      qa.send(rdma(WrOpcode::RdmaRead, size, {ma.sge(16 + shift, size)}, mb, shift));
      const Completion done = a->cq().one(WcStatus::Success);
      EXPECT_EQ(done.opcode, WcOpcode::RdmaRead);
      EXPECT_EQ(done.byte_len, size);
      EXPECT_EQ(ma.mismatches(1, 16 + shift, size, shift), 0u) << size;
      EXPECT_EQ(ma.mismatches(2, 0, 16 + shift), 0u) << size;
      EXPECT_EQ(ma.mismatches(2, 16 + shift + size, 16, 16 + shift + size), 0u) << size;
    }
  }
  EXPECT_TRUE(b->cq().drain().empty());
}

TEST_P(RcRdma, WritesGatherAndReadsScatter) {
  make_pair(QpType::Rc);
  const Region ma = a->region(16384);
  const Region mb = b->region(16384);
  ma.fill(1);
  qa.send(
      rdma(WrOpcode::RdmaWrite, 1, {ma.sge(5, 1001), ma.sge(4000, 3), ma.sge(7000, 2000)}, mb, 9));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 9, 1001, 5), 0u);
  EXPECT_EQ(mb.mismatches(1, 9 + 1001, 3, 4000), 0u);
  EXPECT_EQ(mb.mismatches(1, 9 + 1004, 2000, 7000), 0u);
  mb.fill(2);
  qa.send(rdma(WrOpcode::RdmaRead, 2, {ma.sge(0, 1), ma.sge(100, 5000), ma.sge(8001, 77)}, mb, 1));
  EXPECT_EQ(a->cq().one(WcStatus::Success).byte_len, 5078u);
  EXPECT_EQ(ma.mismatches(2, 0, 1, 1), 0u);
  EXPECT_EQ(ma.mismatches(2, 100, 5000, 2), 0u);
  EXPECT_EQ(ma.mismatches(2, 8001, 77, 5002), 0u);
}

TEST_P(RcRdma, AWriteWithImmediateConsumesAReceiveButNotItsMemory) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(8192);
  ma.fill(1);
  mb.fill(2);
  qb.receive(9, {mb.sge(4096, 10)});
  Work work = rdma(WrOpcode::RdmaWriteWithImm, 8, {ma.sge(0, 3000)}, mb, 1);
  work.imm = 0xdeadbeef;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::RdmaWrite);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.wr_id, 9u);
  EXPECT_EQ(received.opcode, WcOpcode::RecvRdmaWithImm);
  EXPECT_EQ(received.byte_len, 3000u);
  EXPECT_EQ(received.imm, 0xdeadbeefu);
  EXPECT_EQ(received.flags, wc_flag::kWithImm);
  EXPECT_EQ(received.src_qp, qa.qpn);
  EXPECT_EQ(mb.mismatches(1, 1, 3000), 0u);
  EXPECT_EQ(mb.mismatches(2, 4096, 4096, 4096), 0u);
}

TEST_P(RcRdma, AWriteWithImmediateWaitsForAReceive) {
  Connection with;
  with.rnr_retry = 7;
  make_pair(QpType::Rc, with);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  qa.send(rdma(WrOpcode::RdmaWriteWithImm, 8, {ma.sge(0, 8)}, mb));
  EXPECT_TRUE(a->cq().stays_empty());
  qb.receive(1, {});
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, 8u);
}

TEST_P(RcRdma, ZeroLengthRequestsCheckNoKey) {
  make_pair(QpType::Rc);
  for (const WrOpcode opcode : {WrOpcode::RdmaWrite, WrOpcode::RdmaRead}) {
    Work work = send_work(1, {}, opcode);
    work.rkey = 0x666;
    work.remote_address = 0x1234567;
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::Success).byte_len, 0u);
  }
  EXPECT_EQ(qb.state(), QpState::Rts);
}

TEST_P(RcRdma, AnInlineWriteNeedsNoLocalKey) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  const std::uint64_t plain = a->new_memory(4096);
  const Region view{a.get(), kNoHandle, 0, 0, plain, plain, 4096};
  view.fill(5, 0, 128);
  Work work = rdma(WrOpcode::RdmaWrite, 1, {view.sge(0, 100)}, mb, 7);
  work.flags |= send_flag::kInline;
  qa.send(work);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(5, 7, 100), 0u);
}

TEST_P(RcRdma, LargeTransfersGoOnWhileTheRequesterPolls) {
  make_pair(QpType::Rc);
  constexpr std::uint32_t kSize = (17u << 20) + 3;
  const Region ma = a->region(kSize + 4096);
  const Region mb = b->region(kSize + 4096);
  ma.fill(4);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(1, kSize)}, mb, 2));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(4, 2, kSize, 1), 0u);
  mb.fill(5);
  qa.send(rdma(WrOpcode::RdmaRead, 2, {ma.sge(1, kSize)}, mb, 2));
  EXPECT_EQ(a->cq().one(WcStatus::Success).byte_len, kSize);
  EXPECT_EQ(ma.mismatches(5, 1, kSize, 2), 0u);
}

TEST_P(RcRdma, RequestsTakeEffectInTheOrderOfPosting) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  for (std::uint64_t i = 0; i < 8; ++i) ma.set_word(8 * i, i + 1);
  std::vector<Work> list;
  for (std::uint64_t i = 0; i < 8; ++i) {
    list.push_back(rdma(WrOpcode::RdmaWrite, i, {ma.sge(8 * i, 8)}, mb));
  }
  Work read = rdma(WrOpcode::RdmaRead, 8, {ma.sge(1024, 8)}, mb);
  read.flags |= send_flag::kFence;
  list.push_back(read);
  std::uint32_t accepted = 0;
  EXPECT_EQ(qa.try_send(list, accepted), Status::Ok);
  const auto done = a->cq().wait(9);
  ASSERT_EQ(done.size(), 9u);
  for (std::uint64_t i = 0; i < 9; ++i) EXPECT_EQ(done[i].wr_id, i);
  EXPECT_EQ(ma.word(1024), 8u);
}

TEST_P(RcRdma, AFencedRequestSeesTheReadBeforeIt) {
  make_pair(QpType::Rc);
  constexpr std::uint32_t kSize = 12u << 20;  // takes more than one call
  const Region ma = a->region(kSize);
  const Region mb = b->region(2 * kSize);
  mb.fill(3, 0, kSize);
  qa.send(rdma(WrOpcode::RdmaRead, 1, {ma.all()}, mb, 0));
  Work back = rdma(WrOpcode::RdmaWrite, 2, {ma.all()}, mb, kSize);
  back.flags |= send_flag::kFence;
  qa.send(back);
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  EXPECT_EQ(mb.mismatches(3, kSize, kSize, 0), 0u);
}

TEST_P(RcRdma, AtomicsReturnTheOldValue) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  mb.set_word(64, 40);
  mb.set_word(56, 1);
  mb.set_word(72, 2);
  Work add = rdma(WrOpcode::AtomicFetchAdd, 1, {ma.sge(8, 8)}, mb, 64);
  add.compare_add = 2;
  qa.send(add);
  const Completion added = a->cq().one(WcStatus::Success);
  EXPECT_EQ(added.opcode, WcOpcode::FetchAdd);
  EXPECT_EQ(added.byte_len, 8u);
  EXPECT_EQ(ma.word(8), 40u);
  EXPECT_EQ(mb.word(64), 42u);

  Work swap = rdma(WrOpcode::AtomicCmpSwap, 2, {ma.sge(16, 8)}, mb, 64);
  swap.compare_add = 42;
  swap.swap = 7;
  qa.send(swap);
  EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::CompSwap);
  EXPECT_EQ(ma.word(16), 42u);
  EXPECT_EQ(mb.word(64), 7u);

  qa.send(swap);  // the comparison is unequal now
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(ma.word(16), 7u);
  EXPECT_EQ(mb.word(64), 7u);

  add.compare_add = ~std::uint64_t{7} + 1;  // minus 7: wraps
  qa.send(add);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.word(64), 0u);
  add.compare_add = ~std::uint64_t{0};
  qa.send(add);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.word(64), ~std::uint64_t{0});
  EXPECT_EQ(mb.word(56), 1u);
  EXPECT_EQ(mb.word(72), 2u);
}

TEST_P(RcRdma, AnAtomicsResultMayBeScattered) {
  make_pair(QpType::Rc);
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  mb.set_word(0, 0x1122334455667788);
  qa.send(rdma(WrOpcode::AtomicFetchAdd, 1, {ma.sge(0, 3), ma.sge(100, 5)}, mb));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(ma.bytes(0, 3), (std::vector<std::uint8_t>{0x88, 0x77, 0x66}));
  EXPECT_EQ(ma.bytes(100, 5), (std::vector<std::uint8_t>{0x55, 0x44, 0x33, 0x22, 0x11}));
}

TEST_P(RcRdma, AtomicWriteStoresEightBytes) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  mb.fill(1);
  Work work = rdma(WrOpcode::AtomicWrite, 3, {}, mb, 16);
  work.compare_add = 0x0102030405060708;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::AtomicWrite);
  EXPECT_EQ(mb.word(16), 0x0102030405060708u);
  EXPECT_EQ(mb.mismatches(1, 0, 16), 0u);
  EXPECT_EQ(mb.mismatches(1, 24, 100, 24), 0u);
}

TEST_P(RcRdma, NoAddIsLostWhenTwoRequestersAndTheirWordMeet) {
  make_pair(QpType::Rc);
  const std::unique_ptr<Side> c = new_side("C", GetParam().where);
  ASSERT_NE(c, nullptr);
  {
    const Qp qc = c->new_qp();
    const Qp qbc = b->new_qp();
    connect(qc, qbc, QpType::Rc);
    const Region mb = b->region(8192);
    constexpr std::uint64_t kEach = 40;
    const Region ma = a->region(4096);
    const Region mc = c->region(4096);
    std::multiset<std::uint64_t> seen;
    // Interleaved in bursts; in other processes the bursts' executions overlap.
    for (std::uint64_t burst = 0; burst < 5; ++burst) {
      std::vector<Work> from_a;
      std::vector<Work> from_c;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        from_a.push_back(rdma(WrOpcode::AtomicFetchAdd, i, {ma.sge(8 * i, 8)}, mb, 128));
        from_c.push_back(rdma(WrOpcode::AtomicFetchAdd, i, {mc.sge(8 * i, 8)}, mb, 128));
        from_a.back().compare_add = 1;
        from_c.back().compare_add = 1;
      }
      std::uint32_t accepted = 0;
      EXPECT_EQ(qa.try_send(from_a, accepted), Status::Ok);
      EXPECT_EQ(qc.try_send(from_c, accepted), Status::Ok);
      EXPECT_EQ(a->cq().wait(kEach).size(), kEach);
      EXPECT_EQ(c->cq().wait(kEach).size(), kEach);
      for (std::uint64_t i = 0; i < kEach; ++i) {
        seen.insert(ma.word(8 * i));
        seen.insert(mc.word(8 * i));
      }
    }
    EXPECT_EQ(mb.word(128), 10 * kEach);
    std::uint64_t expected = 0;
    for (const std::uint64_t value : seen) EXPECT_EQ(value, expected++);
    EXPECT_EQ(qbc.try_destroy(), Status::Ok);
  }
  (void)c->expect(Command::DestroyAll);
}

TEST_P(RcRdma, BothDirectionsWorkAtOnce) {
  make_pair(QpType::Rc);
  const Region ma = a->region(16384);
  const Region mb = b->region(16384);
  ma.fill(1, 0, 8192);
  mb.fill(2, 0, 8192);
  for (std::uint64_t i = 0; i < 20; ++i) {
    qa.send(rdma(WrOpcode::RdmaWrite, i, {ma.sge(0, 4096)}, mb, 8192));
    qb.send(rdma(WrOpcode::RdmaWrite, i, {mb.sge(0, 4096)}, ma, 8192));
    qa.send(rdma(WrOpcode::RdmaRead, i, {ma.sge(12288, 4096)}, mb, 0));
  }
  EXPECT_EQ(a->cq().wait(40).size(), 40u);
  EXPECT_EQ(b->cq().wait(20).size(), 20u);
  EXPECT_EQ(mb.mismatches(1, 8192, 4096, 0), 0u);
  EXPECT_EQ(ma.mismatches(2, 8192, 4096, 0), 0u);
  EXPECT_EQ(ma.mismatches(2, 12288, 4096, 0), 0u);
}

}  // namespace
}  // namespace ib::conformance
