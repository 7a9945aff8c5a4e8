// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions [IBA1 10.6]: every kind of registration and reregistration, and what peers may
// still do afterwards.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ib::conformance {
namespace {

class Memory : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    ma = a->region(16384);
    connect_new_pair();
  }
  void connect_new_pair() {
    qa = a->new_qp();
    qb = b->new_qp();
    connect(qa, qb, QpType::Rc);
  }
  // A writes 64 bytes with the key. Returns whether it succeeded; a refusal costs a new pair.
  bool may_write(std::uint32_t rkey, std::uint64_t address, Cause* cause = nullptr) {
    return may(WrOpcode::RdmaWrite, rkey, address, 64, cause);
  }
  bool may(WrOpcode opcode, std::uint32_t rkey, std::uint64_t address, std::uint32_t length,
           Cause* cause = nullptr) {
    Work work = send_work(++id_, {ma.sge(0, length)}, opcode);
    work.rkey = rkey;
    work.remote_address = address;
    qa.send(work);
    const Completion done = a->cq().one();
    EXPECT_EQ(done.wr_id, id_);
    if (done.status == WcStatus::Success) return true;
    EXPECT_EQ(done.status, WcStatus::RemAccessErr);
    if (cause != nullptr) *cause = static_cast<Cause>(done.vendor_err);
    connect_new_pair();
    (void)b->event(kMoment);  // the access error
    return false;
  }
  Region ma;

 private:
  std::uint64_t id_ = 0;
};
IB_EVERY_SETTING(Memory);

// Returns true if this address of this process is in a mapped memory file, as adopted pages are.
bool is_in_memory_file(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> first >> dash >> end;
    if (address >= first && address < end) return line.find("/memfd:") != std::string::npos;
  }
  return false;
}

TEST_P(Memory, ImpossibleRegionsAreRefusedWithAReason) {
  RegionSpec good;
  good.pd = a->pd();
  good.access = kAllAccess;
  good.address = a->new_memory(8192);
  good.iova = good.address;
  good.length = 8192;
  const auto refused = [&](void (*spoil)(RegionSpec&)) {
    RegionSpec bad = good;
    spoil(bad);
    Region out;
    EXPECT_EQ(a->try_region(bad, out), Status::InvalidParameter);
    EXPECT_FALSE(a->reason().empty());
  };
  refused([](RegionSpec& s) { s.length = (1ull << 47) + 1; });
  refused([](RegionSpec& s) { s.address = ~std::uint64_t{0} - 100; });
  refused([](RegionSpec& s) { s.iova = ~std::uint64_t{0} - 100; });
  refused([](RegionSpec& s) { s.access = access::kRemoteWrite; });
  refused([](RegionSpec& s) { s.access = access::kRemoteAtomic; });
  refused([](RegionSpec& s) { s.access = 1u << 15; });
  refused([](RegionSpec& s) { s.pd = kNoHandle; });
  refused([](RegionSpec& s) {
    s.flags = control::region_flag::kImplicitOdp;
    s.access = access::kLocalWrite;  // not on demand
  });
}

TEST_P(Memory, AnEmptyRegionGrantsNothing) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.address = b->new_memory(4096);
  spec.iova = spec.address;
  const Region none = b->region_over(spec);
  Cause cause = Cause::None;
  EXPECT_FALSE(may(WrOpcode::RdmaWrite, none.rkey, none.at(0), 1, &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyRange);
}

TEST_P(Memory, ARegionMayBeginAndEndAnywhere) {
  const Region mb = b->region(10001, kAllAccess, {}, 77);
  ma.fill(1);
  mb.fill(2);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 10001)}, mb));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 0, 10001), 0u);
  EXPECT_FALSE(may_write(mb.rkey, mb.at(10001 - 63)));
  EXPECT_TRUE(may_write(mb.rkey, mb.at(10001 - 64)));
}

TEST_P(Memory, AZeroBasedRegionIsNamedFromZero) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess | access::kZeroBased;
  spec.address = b->new_memory(8192);
  spec.length = 8192;
  spec.iova = 0x12345000;  // ignored
  const Region mb = b->region_over(spec);
  ma.fill(1);
  mb.fill(2);
  EXPECT_TRUE(may(WrOpcode::RdmaWrite, mb.rkey, 100, 64));
  EXPECT_EQ(mb.mismatches(1, 100, 64, 0), 0u);
  EXPECT_FALSE(may_write(mb.rkey, spec.address));
  EXPECT_FALSE(may_write(mb.rkey, 8192 - 63));
  qb.receive(1, {{64, 500, mb.lkey}});  // B's own SGEs are zero-based too
  qa.send(send_work(2, {ma.sge(0, 500)}));
  (void)b->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(1, 64, 500, 0), 0u);
}

TEST_P(Memory, ARegionMayHaveAnAddressSpaceOfItsOwn) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.address = b->new_memory(8192);
  spec.length = 8192;
  spec.iova = 0x7000'0000'0000'0000;
  const Region mb = b->region_over(spec);
  ma.fill(1);
  EXPECT_TRUE(may(WrOpcode::RdmaWrite, mb.rkey, spec.iova + 4000, 300));
  EXPECT_EQ(mb.mismatches(1, 4000, 300, 0), 0u);
  EXPECT_FALSE(may_write(mb.rkey, spec.address));
}

TEST_P(Memory, AtomicsWorkWhereTheNameIsAlignedAndTheMemoryIsNot) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess | access::kZeroBased;
  spec.address = b->new_memory(8192) + 3;
  spec.length = 8000;
  const Region mb = b->region_over(spec);
  mb.set_word(16, 5);
  for (int i = 0; i < 20; ++i) {  // both before and after the region is adopted
    Work add = rdma(WrOpcode::AtomicFetchAdd, 1, {ma.sge(0, 8)}, mb, 16);
    add.compare_add = 3;
    qa.send(add);
    (void)a->cq().one(WcStatus::Success);
  }
  EXPECT_EQ(mb.word(16), 65u);
}

TEST_P(Memory, SeveralRegionsMayCoverTheSameBytes) {
  const std::uint64_t memory = b->new_memory(65536);
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.address = memory;
  spec.iova = memory;
  spec.length = 65536;
  const Region whole = b->region_over(spec);
  spec.address = memory + 5000;
  spec.iova = spec.address;
  spec.length = 30000;
  spec.access = access::kLocalWrite | access::kRemoteRead;
  const Region part = b->region_over(spec);
  ma.fill(1);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(may_write(whole.rkey, memory + 5000));
    EXPECT_TRUE(may(WrOpcode::RdmaRead, part.rkey, memory + 5000, 64));
  }
  EXPECT_FALSE(may_write(part.rkey, memory + 5000));
  EXPECT_EQ(b->destroy(Kind::Region, whole.handle), Status::Ok);
  EXPECT_TRUE(may(WrOpcode::RdmaRead, part.rkey, memory + 5000, 64));
  part.fill(7);
  EXPECT_TRUE(may(WrOpcode::RdmaRead, part.rkey, memory + 6000, 64));
  EXPECT_EQ(ma.mismatches(7, 0, 64, 1000), 0u);
}

// Peers reach the first region by its original pages, so those are not moved.
TEST_P(Memory, PagesUnderARegionThatIsNotAdoptedAreNotMovedForAnother) {
  if (GetParam().where != Where::SameProcess || std::string(GetParam().path) != "adopted") {
    GTEST_SKIP() << "it looks at this process's mappings, and is about adopted pages";
  }
  constexpr std::uint64_t kBytes = 65536;
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.length = kBytes;
  spec.address = spec.iova = b->new_memory(kBytes);
  const Region alone = b->region_over(spec);
  ASSERT_TRUE(is_in_memory_file(alone.memory + kBytes / 2));
  spec.address = spec.iova = b->new_memory(kBytes);
  spec.access = kAllAccess | access::kOnDemand;
  const Region on_demand = b->region_over(spec);
  spec.access = kAllAccess;
  const Region other = b->region_over(spec);
  EXPECT_FALSE(is_in_memory_file(on_demand.memory + kBytes / 2));
  ma.fill(1);
  EXPECT_TRUE(may_write(other.rkey, other.at(100)));
  EXPECT_EQ(on_demand.mismatches(1, 100, 64), 0u);
}

TEST_P(Memory, NothingIsReachedAfterDeregistration) {
  const Region mb = b->region(8192);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
  mb.fill(3);
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
  Cause cause = Cause::None;
  EXPECT_FALSE(may_write(mb.rkey, mb.at(0), &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyUnknown);
  EXPECT_EQ(mb.mismatches(3, 0, 8192), 0u);
  // The same memory registered again gets another key.
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.address = mb.memory;
  spec.iova = mb.memory;
  spec.length = 8192;
  const Region again = b->region_over(spec);
  EXPECT_NE(again.rkey, mb.rkey);
  EXPECT_FALSE(may_write(mb.rkey, mb.at(0)));
  EXPECT_TRUE(may_write(again.rkey, mb.at(0)));
}

TEST_P(Memory, MemoryKeepsItsContentThroughRegistrationAndDeregistration) {
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    const std::uint64_t memory = b->new_memory(100'000);
    const Region view{b.get(), kNoHandle, 0, 0, memory, memory, 100'000};
    view.fill(seed);
    RegionSpec spec;
    spec.pd = b->pd();
    spec.access = kAllAccess;
    spec.address = memory + seed * 100;
    spec.iova = spec.address;
    spec.length = 90'000;
    const Region mb = b->region_over(spec);
    EXPECT_EQ(view.mismatches(seed, 0, 100'000), 0u);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(may(WrOpcode::RdmaRead, mb.rkey, mb.at(5000), 4096));
    EXPECT_EQ(ma.mismatches(seed, 0, 4096, 5000 + seed * 100), 0u);
    EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
    EXPECT_EQ(view.mismatches(seed, 0, 100'000), 0u);
  }
}

TEST_P(Memory, RightsCanBeChanged) {
  Region mb = b->region(8192);
  EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
  const auto change = [&](std::uint32_t what, const RegionSpec& to) {
    Reply reply = b->call(Command::Reregister, Message().put(mb.handle).put(what).put(to));
    if (reply.status == Status::Ok) {
      const auto out = reply.out.take<RegionOut>();
      mb.lkey = out.lkey;
      mb.rkey = out.rkey;
    }
    return reply.status;
  };
  RegionSpec to;
  to.access = access::kLocalWrite | access::kRemoteRead;
  EXPECT_EQ(change(4, to), Status::Ok) << b->reason();
  Cause cause = Cause::None;
  EXPECT_FALSE(may_write(mb.rkey, mb.at(0), &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyAccess);
  EXPECT_TRUE(may(WrOpcode::RdmaRead, mb.rkey, mb.at(0), 64));
  // Changes the protection domain.
  to.pd = b->new_pd();
  EXPECT_EQ(change(2, to), Status::Ok) << b->reason();
  EXPECT_FALSE(may(WrOpcode::RdmaRead, mb.rkey, mb.at(0), 64, &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyOtherPd);
  // Changes everything, and moves to other memory.
  to.pd = b->pd();
  to.access = kAllAccess;
  to.address = b->new_memory(4096);
  to.iova = to.address;
  to.length = 4096;
  EXPECT_EQ(change(7, to), Status::Ok) << b->reason();
  const Region moved{b.get(), mb.handle, mb.lkey, mb.rkey, to.address, to.address, 4096};
  mb.fill(9);
  ma.fill(1);
  EXPECT_FALSE(may_write(mb.rkey, mb.at(0), &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyRange);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(may_write(moved.rkey, moved.at(100)));
  EXPECT_EQ(moved.mismatches(1, 100, 64, 0), 0u);
  EXPECT_EQ(mb.mismatches(9, 0, 8192), 0u);
  // Invalid attributes change nothing.
  to.length = (1ull << 47) + 1;
  EXPECT_EQ(change(1, to), Status::InvalidParameter);
  EXPECT_EQ(change(8, to), Status::InvalidParameter);
  EXPECT_EQ(change(0, to), Status::InvalidParameter);
  EXPECT_TRUE(may_write(moved.rkey, moved.at(100)));
  qb.receive(1, {moved.sge(0, 64)});
  qa.send(send_work(77, {ma.sge(0, 64)}));
  (void)b->cq().one(WcStatus::Success);
  (void)a->cq().one(WcStatus::Success);
}

TEST_P(Memory, DeviceMemoryIsReachedByItsOffset) {
  Reply reply = b->expect(Command::AllocDeviceMemory,
                          Message().put(std::uint64_t{8192}).put(std::uint32_t{6}));
  const auto bytes = reply.out.take<std::uint64_t>();
  const auto dm = reply.out.take<std::uint32_t>();
  EXPECT_EQ(bytes % 64, 0u);
  RegionSpec spec;
  spec.pd = b->pd();
  spec.dm = dm;
  spec.access = kAllAccess | access::kZeroBased;
  spec.address = 1000;  // offset
  spec.length = 4096;
  Region mb = b->region_over(spec);
  mb.memory = bytes + 1000;
  ma.fill(1);
  EXPECT_TRUE(may(WrOpcode::RdmaWrite, mb.rkey, 5, 1000));
  EXPECT_EQ(mb.mismatches(1, 5, 1000, 0), 0u);
  EXPECT_FALSE(may_write(mb.rkey, 4096 - 63));
  mb.set_word(2048, 4);
  Work add = rdma(WrOpcode::AtomicFetchAdd, 900, {ma.sge(0, 8)}, mb, 2048);
  add.compare_add = 5;
  qa.send(add);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.word(2048), 9u);
  qb.receive(1, {mb.sge(0, 64)});  // as a receive's buffer and as a source
  ma.fill(6);
  qa.send(send_work(901, {ma.sge(0, 64)}));
  (void)b->cq().one(WcStatus::Success);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(6, 0, 64), 0u);
  EXPECT_EQ(b->destroy(Kind::DeviceMemory, dm), Status::DeviceBusy);
  spec.address = 8000;
  Region out;
  EXPECT_EQ(b->try_region(spec, out), Status::InvalidParameter);
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::DeviceMemory, dm), Status::Ok);
}

TEST_P(Memory, ANullRegionReadsAsZerosAndSwallowsWrites) {
  RegionSpec spec;
  spec.pd = a->pd();
  spec.access = kAllAccess;
  spec.flags = control::region_flag::kNull;
  const Region null = a->region_over(spec);
  const Region mb = b->region(8192);
  mb.fill(1);
  qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 8), {0x1000, 100, null.lkey}}, mb, 16));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.bytes(24, 100), std::vector<std::uint8_t>(100, 0));
  EXPECT_EQ(mb.mismatches(1, 124, 100, 124), 0u);
  mb.fill(2);
  ma.fill(3);
  qa.send(rdma(WrOpcode::RdmaRead, 2, {{0, 1000, null.lkey}, ma.sge(0, 8)}, mb));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(ma.mismatches(2, 0, 8, 1000), 0u);
  EXPECT_EQ(ma.mismatches(3, 8, 1000, 8), 0u);
}

TEST_P(Memory, ANullRegionOfThePeerReadsAsZeros) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess;
  spec.flags = control::region_flag::kNull;
  const Region null = b->region_over(spec);
  EXPECT_TRUE(may_write(null.rkey, 0x123456));
  ma.fill(3);
  EXPECT_TRUE(may(WrOpcode::RdmaRead, null.rkey, 0x123456, 64));
  EXPECT_EQ(ma.bytes(0, 64), std::vector<std::uint8_t>(64, 0));
}

TEST_P(Memory, AnImplicitRegionCoversTheWholeAddressSpace) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess | access::kOnDemand;
  spec.flags = control::region_flag::kImplicitOdp;
  const Region all = b->region_over(spec);
  ma.fill(1);
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t memory = b->new_memory(8192);
    const Region view{b.get(), kNoHandle, 0, 0, memory, memory, 8192};
    EXPECT_TRUE(may(WrOpcode::RdmaWrite, all.rkey, memory + 100, 1000));
    EXPECT_EQ(view.mismatches(1, 100, 1000, 0), 0u);
    qb.receive(1, {{memory, 500, all.lkey}});
    qa.send(send_work(7000, {ma.sge(0, 500)}));
    (void)b->cq().one(WcStatus::Success);
    (void)a->cq().one(WcStatus::Success);
    EXPECT_EQ(view.mismatches(1, 0, 500, 0), 0u);
  }
}

TEST_P(Memory, AnImplicitRegionAndAnOrdinaryOneSeeTheSameBytes) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess | access::kOnDemand;
  spec.flags = control::region_flag::kImplicitOdp;
  const Region all = b->region_over(spec);
  const Region mb = b->region(65536);
  ma.fill(1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(may(WrOpcode::RdmaWrite, mb.rkey, mb.at(i * 100), 100));
    ma.fill(2, 4096, 100);
    Work read = send_work(8000, {ma.sge(8192, 100)}, WrOpcode::RdmaRead);
    read.rkey = all.rkey;
    read.remote_address = mb.at(i * 100);
    qa.send(read);
    (void)a->cq().one(WcStatus::Success);
    EXPECT_EQ(ma.mismatches(1, 8192, 100, 0), 0u);
  }
}

}  // namespace
}  // namespace ib::conformance
