// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions and windows [IBA1 10.6]: every kind of registration, reregistration, binding and
// invalidation, and what peers may still do afterwards.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

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
  // A writes 64 bytes with the key and says whether it was allowed; a refusal costs a new pair.
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
  qb.receive(1, {{64, 500, mb.lkey}});  // its own SGEs too
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
  for (int i = 0; i < 20; ++i) {  // also once the region is adopted
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

TEST_P(Memory, NothingIsReachedAfterDeregistration) {
  const Region mb = b->region(8192);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
  mb.fill(3);
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
  Cause cause = Cause::None;
  EXPECT_FALSE(may_write(mb.rkey, mb.at(0), &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyUnknown);
  EXPECT_EQ(mb.mismatches(3, 0, 8192), 0u);
  // The same memory again: another key.
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
  // The protection domain.
  to.pd = b->new_pd();
  EXPECT_EQ(change(2, to), Status::Ok) << b->reason();
  EXPECT_FALSE(may(WrOpcode::RdmaRead, mb.rkey, mb.at(0), 64, &cause));
  EXPECT_EQ(cause, Cause::RemoteKeyOtherPd);
  // Everything, to other memory.
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
  // Nonsense changes nothing.
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

// --- Windows ---

class Windows : public Memory {
 protected:
  // B binds through its own queue pair.
  Completion bind(std::uint32_t window, const Region& region, std::uint64_t offset,
                  std::uint64_t length, std::uint32_t rights, std::uint32_t rkey) {
    Work work = send_work(5000, {}, WrOpcode::BindMw);
    work.window = window;
    work.bind_region = region.handle;
    work.bind_address = region.at(offset);
    work.bind_length = length;
    work.bind_access = rights;
    work.bind_rkey = rkey;
    qb.send(work);
    return b->cq().one();
  }
  static std::uint32_t next_tag(std::uint32_t rkey) {
    return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
  }
};
IB_EVERY_SETTING(Windows);

TEST_P(Windows, Type2GrantsWhatItIsBoundToUntilItIsInvalidated) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  EXPECT_FALSE(may_write(rkey, mb.at(0))) << "not bound yet";
  rkey = next_tag(rkey);
  const Completion bound = bind(window, mb, 1000, 2000, access::kRemoteWrite, rkey);
  ASSERT_EQ(bound.status, WcStatus::Success);
  EXPECT_EQ(bound.opcode, WcOpcode::BindMw);
  ma.fill(1);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(may_write(rkey, mb.at(1000)));
  EXPECT_EQ(mb.mismatches(1, 1000, 64, 0), 0u);
  Work invalidate = send_work(5001, {}, WrOpcode::LocalInv);
  invalidate.imm = rkey;
  qb.send(invalidate);
  EXPECT_EQ(b->cq().one(WcStatus::Success).opcode, WcOpcode::LocalInv);
  EXPECT_FALSE(may_write(rkey, mb.at(1000)));
  EXPECT_EQ(b->destroy(Kind::Window, window), Status::Ok);
}

TEST_P(Windows, AWindowHasItsOwnRangeAndRights) {
  for (const std::uint32_t type : {1u, 2u}) {
    SCOPED_TRACE(type);
    const Region mb = b->region(8192);
    std::uint32_t rkey = 0;
    const std::uint32_t window = b->new_window(type, rkey, b->pd());
    const auto rebind = [&](std::uint32_t rights) {
      rkey = next_tag(rkey);
      if (type == 2) {
        // A fresh one each time: refusals below cost the queue pair, and type 2 belongs to it.
        const std::uint32_t fresh = b->new_window(2, rkey, b->pd());
        rkey = next_tag(rkey);
        EXPECT_EQ(bind(fresh, mb, 1000, 2000, rights, rkey).status, WcStatus::Success);
      } else {
        EXPECT_EQ(bind(window, mb, 1000, 2000, rights, rkey).status, WcStatus::Success);
      }
    };
    Cause cause = Cause::None;
    rebind(access::kRemoteWrite);
    EXPECT_TRUE(may_write(rkey, mb.at(3000 - 64)));
    EXPECT_FALSE(may_write(rkey, mb.at(3000 - 63), &cause));
    EXPECT_EQ(cause, Cause::RemoteKeyRange);
    rebind(access::kRemoteWrite);
    EXPECT_FALSE(may_write(rkey, mb.at(999), &cause));
    EXPECT_EQ(cause, Cause::RemoteKeyRange);
    rebind(access::kRemoteWrite);
    EXPECT_FALSE(may(WrOpcode::RdmaRead, rkey, mb.at(1000), 8, &cause));
    EXPECT_EQ(cause, Cause::RemoteKeyAccess);
    rebind(access::kRemoteRead);
    EXPECT_TRUE(may(WrOpcode::RdmaRead, rkey, mb.at(1000), 8));
    EXPECT_FALSE(may_write(rkey, mb.at(1000), &cause));
    EXPECT_EQ(cause, Cause::RemoteKeyAccess);
  }
}

TEST_P(Windows, ANewBindingOfType1EndsTheOldOneAndAnEmptyOneEndsAll) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(1, rkey, b->pd());
  const std::uint32_t first = next_tag(rkey);
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, first).status, WcStatus::Success);
  EXPECT_TRUE(may_write(first, mb.at(0)));
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::DeviceBusy);
  const std::uint32_t second = next_tag(first);
  EXPECT_EQ(bind(window, mb, 4096, 4096, access::kRemoteWrite, second).status, WcStatus::Success);
  EXPECT_TRUE(may_write(second, mb.at(4096)));
  EXPECT_FALSE(may_write(first, mb.at(0)));
  EXPECT_TRUE(may_write(second, mb.at(4096))) << "type 1 outlives the queue pair that bound it";
  EXPECT_EQ(bind(window, mb, 0, 0, 0, next_tag(second)).status, WcStatus::Success);
  EXPECT_FALSE(may_write(second, mb.at(4096)));
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
}

TEST_P(Windows, Type2BelongsToItsQueuePair) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  rkey = next_tag(rkey);
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, rkey).status, WcStatus::Success);
  const Qp first = qa;
  connect_new_pair();
  EXPECT_FALSE(may_write(rkey, mb.at(0)));
  first.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 8)},
                  Region{b.get(), kNoHandle, 0, rkey, 0, mb.at(0), 8}));
  (void)a->cq().one(WcStatus::Success);
}

TEST_P(Windows, ASendMayInvalidateThePeersWindow) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  rkey = next_tag(rkey);
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, rkey).status, WcStatus::Success);
  EXPECT_TRUE(may_write(rkey, mb.at(0)));
  qb.receive(3, {mb.sge(4096, 100)});
  Work work = send_work(4, {ma.sge(0, 50)}, WrOpcode::SendWithInv);
  work.imm = rkey;
  qa.send(work);
  EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::Send);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.flags, wc_flag::kWithInv);
  EXPECT_EQ(received.imm, rkey);
  EXPECT_EQ(received.byte_len, 50u);
  EXPECT_FALSE(may_write(rkey, mb.at(0)));
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
}

TEST_P(Windows, InvalidatingWhatIsNoBoundWindowOfThePeerFails) {
  const Region mb = b->region(8192);
  for (const std::uint32_t rkey : {mb.rkey, 0u, 0x12345678u}) {
    qb.receive(3, {mb.sge(0, 100)});
    Work work = send_work(4, {ma.sge(0, 50)}, WrOpcode::SendWithInv);
    work.imm = rkey;
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::RemAccessErr).wr_id, 4u);
    EXPECT_TRUE(qb.reaches(QpState::Error));
    (void)b->cq().wait(1);
    connect_new_pair();
  }
  EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
}

TEST_P(Windows, WrongBindingsFailTheBinder) {
  const Region mb = b->region(8192);
  const Region no_bind = b->region(8192, access::kLocalWrite | access::kRemoteAny);
  const Region read_only = b->region(8192, access::kMwBind | access::kRemoteRead);
  const Region other_pd = b->region(8192, kAllAccess, b->new_pd());
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  std::uint32_t foreign_rkey = 0;
  const std::uint32_t foreign = b->new_window(2, foreign_rkey, b->new_pd());
  const std::uint32_t good = next_tag(rkey);
  const auto refused = [&](const Completion& done) {
    EXPECT_EQ(done.status, WcStatus::MwBindErr);
    EXPECT_EQ(done.vendor_err, static_cast<std::uint32_t>(Cause::WindowBind));
    EXPECT_TRUE(qb.reaches(QpState::Error));
    connect_new_pair();
  };
  const std::uint32_t write = access::kRemoteWrite;
  refused(bind(window, no_bind, 0, 100, write, good));
  refused(bind(window, read_only, 0, 100, write, good));
  refused(bind(window, other_pd, 0, 100, write, good));
  refused(bind(window, mb, 8000, 193, write, good));
  refused(bind(window, mb, 0, 0, write, good));
  refused(bind(window, mb, 0, 100, write, good ^ 0x100));
  refused(bind(foreign, mb, 0, 100, write, next_tag(foreign_rkey)));
  EXPECT_EQ(bind(window, mb, 0, 100, write, good).status, WcStatus::Success);
  refused(bind(window, mb, 0, 100, write, next_tag(good)));  // still bound
  Work nothing = send_work(1, {}, WrOpcode::LocalInv);
  nothing.imm = mb.rkey;
  qb.send(nothing);
  EXPECT_EQ(b->cq().one(WcStatus::MwBindErr).wr_id, 1u);
  connect_new_pair();
}

TEST_P(Windows, ARegionIsBusyWhileAWindowIsBound) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  EXPECT_EQ(bind(window, mb, 0, 100, access::kRemoteRead, next_tag(rkey)).status,
            WcStatus::Success);
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::DeviceBusy);
  EXPECT_FALSE(b->reason().empty());
  qa.receive(1, {});  // the region still works after the refusal
  qb.send(send_work(2, {mb.sge(0, 0)}));
  (void)b->cq().one(WcStatus::Success);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
  EXPECT_EQ(b->destroy(Kind::Window, window), Status::Ok);
  EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
}

TEST_P(Windows, AWindowOfAZeroBasedRegionAndAZeroBasedWindow) {
  RegionSpec spec;
  spec.pd = b->pd();
  spec.access = kAllAccess | access::kZeroBased;
  spec.address = b->new_memory(8192);
  spec.length = 8192;
  const Region mb = b->region_over(spec);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(1, rkey, b->pd());
  ma.fill(1);
  mb.fill(2);
  EXPECT_EQ(bind(window, mb, 1000, 500, access::kRemoteWrite, rkey = next_tag(rkey)).status,
            WcStatus::Success);
  EXPECT_TRUE(may_write(rkey, 1010));
  EXPECT_EQ(mb.mismatches(1, 1010, 64, 0), 0u);
  EXPECT_EQ(
      bind(window, mb, 2000, 500, access::kRemoteWrite | access::kZeroBased, rkey = next_tag(rkey))
          .status,
      WcStatus::Success);
  EXPECT_TRUE(may_write(rkey, 10));
  EXPECT_EQ(mb.mismatches(1, 2010, 64, 0), 0u);
  EXPECT_FALSE(may_write(rkey, 500 - 63));
}

}  // namespace
}  // namespace ib::conformance
