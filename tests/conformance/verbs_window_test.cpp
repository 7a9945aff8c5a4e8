// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows [IBA1 10.6.7]: binding and invalidation, locally and by a peer, and the access
// that peers have afterwards.
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

class Windows : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    ma = a->region(16384);
    connect_new_pair();
  }
  void connect_new_pair() {
    Connection with;
    with.timeout = 8;  // 1 ms: some of these requests get no answer
    with.retry_cnt = 2;
    qa = a->new_qp();
    qb = b->new_qp();
    connect(qa, qb, QpType::Rc, with);
  }
  // A writes 64 bytes with the key. Returns whether it succeeded; a refusal costs a new pair.
  bool may_write(std::uint32_t rkey, std::uint64_t address, Cause* cause = nullptr) {
    return may(WrOpcode::RdmaWrite, rkey, address, 64, cause);
  }
  bool may(WrOpcode opcode, std::uint32_t rkey, std::uint64_t address, std::uint32_t length,
           Cause* cause = nullptr) {
    const bool good = may_through(qa, opcode, rkey, address, length, cause);
    if (good) return true;
    connect_new_pair();
    (void)b->event(kMoment);  // the access error
    return false;
  }
  bool may_through(const Qp& qp, WrOpcode opcode, std::uint32_t rkey, std::uint64_t address,
                   std::uint32_t length, Cause* cause = nullptr) {
    qp.send(rdma(opcode, ++id_, {ma.sge(0, length)}, rkey, address));
    const Completion done = a->cq().one();
    EXPECT_EQ(done.wr_id, id_);
    if (done.status == WcStatus::Success) return true;
    EXPECT_EQ(done.status, WcStatus::RemAccessErr);
    if (cause != nullptr) *cause = static_cast<Cause>(done.vendor_err);
    return false;
  }
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
  // A sends 50 bytes and requests that the key be invalidated.
  void send_with_invalidate(std::uint64_t wr_id, std::uint32_t rkey) const {
    Work work = send_work(wr_id, {ma.sge(0, 50)}, WrOpcode::SendWithInv);
    work.imm = rkey;
    qa.send(work);
  }
  // Checks that such a request ended as an error of class J [IBA1 9.9.6.3]: an error at the
  // receive, no response to the requester.
  void expect_class_j(std::uint64_t wr_id, std::uint64_t receive_id) {
    const Completion received = b->cq().one(WcStatus::MwBindErr);
    EXPECT_EQ(received.wr_id, receive_id);
    EXPECT_EQ(received.vendor_err, static_cast<std::uint32_t>(Cause::RemoteInvalidate));
    EXPECT_TRUE(qb.reaches(QpState::Error));
    const Completion failed = a->cq().one(WcStatus::RetryExcErr);
    EXPECT_EQ(failed.wr_id, wr_id);
    EXPECT_EQ(failed.vendor_err, static_cast<std::uint32_t>(Cause::RemoteInvalidate));
  }
  static std::uint32_t next_tag(std::uint32_t rkey) {
    return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
  }
  Region ma;

 private:
  std::uint64_t id_ = 0;
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
        // A new window each time: a refusal costs the queue pair, and a type 2 window belongs to
        // it.
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
  std::uint32_t type1 = 0;
  const std::uint32_t window = b->new_window(1, type1, b->pd());
  type1 = next_tag(type1);
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, type1).status, WcStatus::Success);
  std::uint32_t unbound = 0;
  (void)b->new_window(2, unbound, b->pd());
  for (const std::uint32_t rkey : {mb.rkey, 0u, 0x12345678u, type1, unbound}) {
    qb.receive(3, {mb.sge(0, 100)});
    qb.receive(4, {mb.sge(0, 100)});
    send_with_invalidate(5, rkey);
    expect_class_j(5, 3);
    EXPECT_EQ(b->cq().one(WcStatus::WrFlushErr).wr_id, 4u);
    EXPECT_FALSE(b->event(kMoment).has_value()) << "the completion says it";
    connect_new_pair();
  }
  EXPECT_TRUE(may_write(type1, mb.at(0)));
  EXPECT_TRUE(may_write(mb.rkey, mb.at(0)));
}

// A window of the same process and protection domain that is bound to another queue pair.
TEST_P(Windows, AnotherQueuePairsWindowSurvives) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  rkey = next_tag(rkey);
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, rkey).status, WcStatus::Success);
  const Qp bound_at_a = qa;
  connect_new_pair();
  qb.receive(3, {mb.sge(4096, 100)});
  send_with_invalidate(4, rkey);
  expect_class_j(4, 3);
  connect_new_pair();
  Work local = send_work(5, {}, WrOpcode::LocalInv);
  local.imm = rkey;
  qb.send(local);
  EXPECT_EQ(b->cq().one(WcStatus::MwBindErr).wr_id, 5u);
  EXPECT_TRUE(may_through(bound_at_a, WrOpcode::RdmaWrite, rkey, mb.at(0), 64));
}

// C has a window of its own; C is a third process or a second client of this one.
TEST_P(Windows, AnotherProcessesWindowSurvives) {
  const auto c = new_side("C", GetParam().where);
  ASSERT_NE(c, nullptr);
  const Region mc = c->region(8192);
  const Qp ac = a->new_qp();
  const Qp ca = c->new_qp();
  connect(ac, ca, QpType::Rc);
  std::uint32_t rkey = 0;
  const std::uint32_t window = c->new_window(2, rkey, c->pd());
  Work work = send_work(1, {}, WrOpcode::BindMw);
  work.window = window;
  work.bind_region = mc.handle;
  work.bind_address = mc.at(0);
  work.bind_length = 4096;
  work.bind_access = access::kRemoteWrite;
  work.bind_rkey = rkey = next_tag(rkey);
  ca.send(work);
  (void)c->cq().one(WcStatus::Success);
  const Region mb = b->region(4096);
  qb.receive(3, {mb.sge(0, 100)});
  send_with_invalidate(4, rkey);
  expect_class_j(4, 3);
  EXPECT_TRUE(may_through(ac, WrOpcode::RdmaWrite, rkey, mc.at(0), 64));
  (void)c->expect(Command::DestroyAll);
}

TEST_P(Windows, AMessageThatFailsInvalidatesNothing) {
  const Region mb = b->region(8192);
  const Region read_only = b->region(4096, access::kRemoteRead);
  struct Fault {
    Sge room;
    WcStatus status;
    WcStatus peer_status;
  };
  for (const Fault& fault :
       {Fault{mb.sge(4096, 49), WcStatus::RemInvReqErr, WcStatus::LocLenErr},
        Fault{read_only.sge(0, 50), WcStatus::RemOpErr, WcStatus::LocProtErr}}) {
    std::uint32_t key = 0;
    const std::uint32_t bound = b->new_window(2, key, b->pd());
    key = next_tag(key);
    EXPECT_EQ(bind(bound, mb, 0, 4096, access::kRemoteWrite, key).status, WcStatus::Success);
    EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::DeviceBusy);
    qb.receive(3, {fault.room});
    send_with_invalidate(4, key);
    EXPECT_EQ(a->cq().one(fault.status).wr_id, 4u);
    EXPECT_EQ(b->cq().one(fault.peer_status).wr_id, 3u);
    EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::DeviceBusy) << "still bound";
    EXPECT_EQ(b->destroy(Kind::Window, bound), Status::Ok);
    connect_new_pair();
  }
}

// The index is that of the window, whatever the caller puts into the upper bytes of the key.
TEST_P(Windows, TheCallerChoosesTheLowByteOfAKey) {
  const Region mb = b->region(8192);
  std::uint32_t rkey = 0;
  const std::uint32_t window = b->new_window(2, rkey, b->pd());
  EXPECT_EQ(bind(window, mb, 0, 4096, access::kRemoteWrite, 0xdeadbe5a).status, WcStatus::Success);
  const std::uint32_t bound = (rkey & ~0xffu) | 0x5a;
  EXPECT_TRUE(may_write(bound, mb.at(0)));
  EXPECT_FALSE(may_write(0xdeadbe5a, mb.at(0)));
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
