// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FLUSH over reliable connections [IBA1 1.6 annex A19]: when it ends, what it checks, and which
// rights it needs. Persistence has none that could grant it.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <vector>

namespace ib::conformance {
namespace {

using verbs::flush::kGlobal;
using verbs::flush::kPersistent;
using verbs::flush::kRange;
using verbs::flush::kRegion;
using verbs::flush::operands;

class RcFlush : public VerbsTest {
 protected:
  Work of_region(std::uint64_t wr_id, const Region& remote) const {
    Work work = flush(wr_id, remote, 0, 0);
    work.imm = operands(kGlobal, kRegion);
    return work;
  }
  void expect_refusal(const Work& work, WcStatus status, Cause cause) {
    qa.send(work);
    const Completion failed = a->cq().one(status);
    EXPECT_EQ(failed.wr_id, work.wr_id);
    EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(cause));
    EXPECT_EQ(failed.opcode, WcOpcode::Flush);
    EXPECT_TRUE(qa.reaches(QpState::Error));
  }
};
IB_EVERY_SETTING(RcFlush);

TEST_P(RcFlush, EndsWhenTheWritesBeforeItAreInPlaceAndChangesNothing) {
  make_pair(QpType::Rc);
  const Region ma = a->region(64 * 1024);
  const Region mb = b->region(64 * 1024);
  ma.fill(1);
  mb.fill(2);
  for (const bool whole : {false, true}) {
    qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 40'000)}, mb));
    qa.send(whole ? of_region(2, mb) : flush(2, mb, 0, 64 * 1024));
    EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::RdmaWrite);
    const Completion done = a->cq().one(WcStatus::Success);
    EXPECT_EQ(done.opcode, WcOpcode::Flush);
    EXPECT_EQ(done.wr_id, 2u);
    EXPECT_EQ(done.byte_len, 0u);
    EXPECT_EQ(mb.mismatches(1, 0, 40'000), 0u);
    EXPECT_EQ(mb.mismatches(2, 40'000, 24 * 1024, 40'000), 0u);
  }
  EXPECT_TRUE(b->cq().drain().empty());
}

TEST_P(RcFlush, KeepsItsPlaceBehindARequestThatWaits) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  qa.send(send_work(1, {}));  // there is no receive yet
  qa.send(flush(2, mb, 0, 8));
  EXPECT_TRUE(a->cq().stays_empty());
  qb.receive(3, {});
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 1u);
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 2u);
}

TEST_P(RcFlush, NeedsOperandsThatExist) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  for (const std::uint32_t bad : {operands(0, kRange), operands(4, kRange),
                                  operands(kGlobal | 0x80, kRange), operands(kGlobal, 2)}) {
    Work work = flush(1, mb, 0, 8);
    work.imm = bad;
    EXPECT_EQ(qa.try_send(work), Status::InvalidParameter) << bad;
  }
  EXPECT_TRUE(a->cq().drain().empty());
  EXPECT_EQ(qa.state(), QpState::Rts);
}

TEST_P(RcFlush, ARangeLiesInsideItsRegion) {
  struct Fault {
    const char* name;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  // A flush looks at its key also for no bytes, unlike a write.
  for (const Fault& fault : std::vector<Fault>{{"one byte too many", 96, 4001},
                                               {"before the region", ~std::uint64_t{0}, 8},
                                               {"no byte behind it", 4097, 0},
                                               {"behind it", 4096, 1}}) {
    SCOPED_TRACE(fault.name);
    make_pair(QpType::Rc);
    const Region mb = b->region(4096);
    expect_refusal(flush(5, mb, fault.offset, fault.bytes), WcStatus::RemAccessErr,
                   Cause::RemoteKeyRange);
    EXPECT_TRUE(qb.reaches(QpState::Error));
  }
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  qa.send(flush(6, mb, 96, 4000));
  qa.send(flush(7, mb, 4096, 0));
  Work anywhere = of_region(8, mb);
  anywhere.remote_address = 1;
  anywhere.compare_add = ~std::uint64_t{0};
  qa.send(anywhere);
  for (const std::uint64_t id : {6u, 7u, 8u}) EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, id);
}

TEST_P(RcFlush, MoreThanTwoGigabytesAreTooLongForOneRequest) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096);
  expect_refusal(flush(5, mb, 0, (std::uint64_t{1} << 31) + 1), WcStatus::LocLenErr,
                 Cause::LocalLength);
  EXPECT_EQ(qb.state(), QpState::Rts);
}

TEST_P(RcFlush, AKeyThatNamesNothingIsRefusedForARangeAndForARegion) {
  for (const bool whole : {false, true}) {
    make_pair(QpType::Rc);
    const Region mb = b->region(4096);
    Work work = whole ? of_region(5, mb) : flush(5, mb, 0, 0);
    work.rkey ^= 0x77;
    expect_refusal(work, WcStatus::RemAccessErr, Cause::RemoteKeyUnknown);
  }
}

TEST_P(RcFlush, ARegionOfAnotherPdIsRefused) {
  for (const bool whole : {false, true}) {
    make_pair(QpType::Rc);
    const Region mb = b->region(4096, kAllAccess, b->new_pd());
    expect_refusal(whole ? of_region(5, mb) : flush(5, mb, 0, 8), WcStatus::RemAccessErr,
                   Cause::RemoteKeyOtherPd);
  }
}

TEST_P(RcFlush, ARegionWithoutTheRightRefuses) {
  make_pair(QpType::Rc);
  const Region mb = b->region(4096, kAllAccess & ~access::kFlushGlobal);
  expect_refusal(flush(5, mb, 0, 8), WcStatus::RemAccessErr, Cause::RemoteKeyAccess);
  EXPECT_TRUE(qb.reaches(QpState::Error));
}

TEST_P(RcFlush, AQueuePairWithoutTheRightRefuses) {
  Connection with;
  with.access &= ~access::kFlushGlobal;
  make_pair(QpType::Rc, with);
  const Region mb = b->region(4096);
  expect_refusal(flush(5, mb, 0, 8), WcStatus::RemInvReqErr, Cause::RemoteQpAccess);
}

TEST_P(RcFlush, NeedsNoRightToReadOrWrite) {
  Connection with;
  with.access = access::kFlushGlobal;
  make_pair(QpType::Rc, with);
  const Region mb = b->region(4096, access::kFlushGlobal);
  qa.send(flush(5, mb, 0, 8));
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 5u);
}

TEST_P(RcFlush, NeedsDepthAtBothEnds) {
  Connection with;
  with.max_rd_atomic = 0;
  make_pair(QpType::Rc, with);
  const Region mb = b->region(4096);
  expect_refusal(flush(5, mb, 0, 8), WcStatus::LocQpOpErr, Cause::ReadDepth);
  with.max_rd_atomic = 1;
  with.max_dest_rd_atomic = 0;
  make_pair(QpType::Rc, with);
  expect_refusal(flush(5, mb, 0, 8), WcStatus::RemInvReqErr, Cause::ReadDepth);
}

TEST_P(RcFlush, NothingIsPersistent) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.length = 4096;
  spec.address = b->new_memory(spec.length);
  spec.access = kAllAccess | access::kFlushPersistent;
  Region none;
  EXPECT_EQ(b->try_region(spec, none), Status::NotSupported);
  EXPECT_EQ(b->reason(), "IBV_ACCESS_FLUSH_PERSISTENT: an HCA of softib has no persistent memory");

  Connection with;
  with.access |= access::kFlushPersistent;
  make_pair(QpType::Rc, with);
  const Region mb = b->region(4096);
  Work work = flush(5, mb, 0, 8);
  work.imm = operands(kGlobal | kPersistent, kRange);
  expect_refusal(work, WcStatus::RemAccessErr, Cause::RemoteKeyAccess);
}

}  // namespace
}  // namespace ib::conformance
