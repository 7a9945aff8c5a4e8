// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Creation, use and destruction of every kind of object, through IRPs.
#include "drivers/test/driver_bench_test.h"
#include "verbs/limits.h"

#include <gtest/gtest.h>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

using verbs::QpType;

TEST(Objects, NoProcessTakesAllDescriptorsThatSoftibdMayHave) {
  Bench b;
  Process hog(b, 11, "node0");
  Process other(b, 12, "node0");
  const std::size_t most = b.host.max_handles() / 4;
  std::uint32_t last = 0;
  for (std::size_t held = 0; held + 3 <= most; held += 3) {
    last = hog.good(hog.root_call(Code::CreateChannel));
    hog.good(hog.root_call<BackingOut>(Code::CreateBacking, BackingIn{4096}));
  }
  const auto refused = hog.root_call(Code::CreateChannel);
  EXPECT_EQ(refused.status, Status::InsufficientResources);
  EXPECT_NE(refused.reason.find("descriptors"), std::string::npos) << refused.reason;
  other.good(other.root_call(Code::CreateChannel));
  hog.good(hog.root_call(Code::DestroyChannel, IndexIn{last, 0}));
  hog.good(hog.root_call(Code::CreateChannel));
}

TEST(Objects, EveryKindIsCreatedAndDestroyedAndLeavesNothing) {
  Bench b;
  Process p(b, 11, "node0");
  const std::size_t before = b.objects();
  const std::uint32_t pd = p.pd();
  const std::uint32_t channel = p.good(p.root_call(Code::CreateChannel));
  const std::uint32_t backing =
      p.good(p.root_call<BackingOut>(Code::CreateBacking, BackingIn{8192}));
  const std::uint32_t cq = p.cq(10, channel);
  const std::uint32_t mr = p.good(p.mr(pd));
  const std::uint32_t mw = p.good(p.call<MrOut>(Code::AllocMw, AllocMwIn{pd, 2}));
  const std::uint32_t dm = p.good(p.call<DmOut>(Code::AllocDm, AllocDmIn{10000, 12, 0}));
  verbs::AddressVector av;
  av.dlid = 3;
  av.port = 1;
  const std::uint32_t ah = p.good(p.call(Code::CreateAh, CreateAhIn{pd, 0, av}));
  CreateSrqIn srq_in;
  srq_in.pd = pd;
  srq_in.max_wr = 100;
  srq_in.max_sge = 3;
  const std::uint32_t srq = p.good(p.call<SrqOut>(Code::CreateSrq, srq_in));
  const std::uint32_t xrcd = p.good(p.call(Code::OpenXrcd, OpenXrcdIn{0, 0, 1, 0}));
  const std::uint32_t rc = p.good(p.qp(QpType::Rc, pd, cq));
  const std::uint32_t ud = p.good(p.qp(QpType::Ud, pd, cq));
  McastIn mcast{ud, 0xc001, 0, {}};
  mcast.mgid[0] = 0xff;
  p.good(p.call(Code::AttachMcast, mcast));
  p.good(p.call(Code::AttachMcast, mcast));  // again: no change
  EXPECT_EQ(b.arena().mcast_count().load(), 1u);
  EXPECT_EQ(b.arena().mcast(0)->qpn.load(), b.arena().qp(control::index_of(ud))->id.qpn.load());

  p.good(p.call(Code::DetachMcast, mcast));
  EXPECT_EQ(p.call(Code::DetachMcast, mcast).status, Status::InvalidParameter);
  for (const auto& [code, handle] :
       std::vector<std::pair<Code, std::uint32_t>>{{Code::DestroyQp, rc},
                                                   {Code::DestroyQp, ud},
                                                   {Code::DestroySrq, srq},
                                                   {Code::CloseXrcd, xrcd},
                                                   {Code::DestroyAh, ah},
                                                   {Code::DeallocMw, mw},
                                                   {Code::DeregMr, mr},
                                                   {Code::FreeDm, dm},
                                                   {Code::DestroyCq, cq},
                                                   {Code::DeallocPd, pd}}) {
    p.good(p.call(code, IndexIn{handle, 0}));
    EXPECT_EQ(p.call(code, IndexIn{handle, 0}).status, Status::NotFound);
  }
  p.good(p.root_call(Code::DestroyChannel, IndexIn{channel, 0}));
  p.good(p.root_call(Code::DestroyBacking, IndexIn{backing, 0}));
  EXPECT_EQ(b.objects(), before);
}

TEST(Objects, WhatOthersDependOnIsBusyAndSaysWhy) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t channel = p.good(p.root_call(Code::CreateChannel));
  const std::uint32_t cq = p.cq(10, channel);
  const std::uint32_t qp = p.good(p.qp(QpType::Rc, pd, cq));
  p.good(p.mr(pd));
  p.good(p.mr(pd));
  const auto busy_pd = p.call(Code::DeallocPd, IndexIn{pd, 0});
  EXPECT_EQ(busy_pd.status, Status::DeviceBusy);
  EXPECT_EQ(busy_pd.reason, "protection domain " + std::to_string(control::index_of(pd)) +
                                " is in use by 2 memory regions, 1 queue pair");
  EXPECT_EQ(p.call(Code::DestroyCq, IndexIn{cq, 0}).status, Status::DeviceBusy);
  EXPECT_EQ(p.root_call(Code::DestroyChannel, IndexIn{channel, 0}).status, Status::DeviceBusy);
  p.good(p.call(Code::DestroyQp, IndexIn{qp, 0}));
  p.good(p.call(Code::DestroyCq, IndexIn{cq, 0}));
  p.good(p.root_call(Code::DestroyChannel, IndexIn{channel, 0}));
}

TEST(Objects, AnotherProcessesHandlesNameNothing) {
  Bench b;
  Process a(b, 11, "node0");
  Process z(b, 12, "node0");
  const std::uint32_t pd = a.pd();
  const std::uint32_t cq = a.cq();
  const std::uint32_t own_pd = z.pd();
  const std::uint32_t mr = a.good(a.mr(pd));
  const std::uint32_t qp = a.good(a.qp(QpType::Rc, pd, cq));
  EXPECT_EQ(z.mr(pd).status, Status::InvalidParameter);
  EXPECT_EQ(z.qp(QpType::Rc, own_pd, cq).status, Status::InvalidParameter);
  for (const auto& [code, handle] :
       std::vector<std::pair<Code, std::uint32_t>>{{Code::DestroyQp, qp},
                                                   {Code::DeregMr, mr},
                                                   {Code::DestroyCq, cq},
                                                   {Code::DeallocPd, pd},
                                                   {Code::QueryQp, qp},
                                                   {Code::QueryMr, mr}}) {
    const auto reply = z.call<QueryQpOut>(code, IndexIn{handle, 0});
    EXPECT_EQ(reply.status, Status::InvalidParameter);
    EXPECT_NE(reply.reason.find("there is no"), std::string::npos) << reply.reason;
  }
}

TEST(Objects, ARegionIsPublishedWithAKeyThatChangesWithEachUse) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const auto first = p.mr(pd, verbs::access::kRemoteRead);
  const hca::KeyEntry& entry = *b.arena().key(control::index_of(first.handle));
  EXPECT_EQ(hca::key_index(first.out.lkey), control::index_of(first.handle));
  EXPECT_EQ(entry.id.key.load(), first.out.rkey);
  EXPECT_EQ(entry.id.state.load(), hca::KeyState::Valid);
  EXPECT_EQ(entry.id.owner_slot, p.attach.slot);
  EXPECT_EQ(entry.id.address, 0x10000u);
  p.good(p.call(Code::DeregMr, IndexIn{first.handle, 0}));
  EXPECT_EQ(entry.id.key.load(), 0u);
  EXPECT_EQ(entry.id.state.load(), hca::KeyState::Invalid);
}

TEST(Objects, RegistrationsThatCannotWorkAreRefused) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  EXPECT_EQ(p.mr(pd, verbs::access::kRemoteWrite).status, Status::InvalidParameter);
  EXPECT_EQ(p.mr(pd, 1u << 15).status, Status::InvalidParameter);
  RegMrIn in{pd, 1, 0x1000, 0, 0x1000, kNoIndex, 0};
  p.good(p.call<MrOut>(Code::RegMr, in));  // an empty region: its keys give access to nothing
  in.length = ~std::uint64_t{0};
  EXPECT_EQ(p.call<MrOut>(Code::RegMr, in).status, Status::InvalidParameter);
  const std::uint32_t dm = p.good(p.call<DmOut>(Code::AllocDm, AllocDmIn{100, 0, 0}));
  EXPECT_EQ(p.call<MrOut>(Code::RegMr, RegMrIn{pd, 1 | verbs::access::kZeroBased, 50, 51, 0, dm, 0})
                .status,
            Status::InvalidParameter);
  p.good(p.call<MrOut>(Code::RegMr, RegMrIn{pd, 1 | verbs::access::kZeroBased, 50, 50, 0, dm, 0}));
  EXPECT_EQ(p.call(Code::FreeDm, IndexIn{dm, 0}).status, Status::DeviceBusy);
}

TEST(Objects, ARegionWithBoundWindowsIsBusyUntilTheyAreGone) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t mr = p.good(p.mr(pd, 1 | verbs::access::kMwBind));
  const std::uint32_t mw = p.good(p.call<MrOut>(Code::AllocMw, AllocMwIn{pd, 1}));
  // The effect of binding.
  b.arena().key(control::index_of(mr))->adopted.windows.store(1);
  b.arena().key(control::index_of(mw))->id.window_region = control::index_of(mr);
  b.arena().key(control::index_of(mw))->id.state.store(hca::KeyState::Valid);
  EXPECT_EQ(p.call(Code::DeregMr, IndexIn{mr, 0}).status, Status::DeviceBusy);
  p.good(p.call(Code::DeallocMw, IndexIn{mw, 0}));
  EXPECT_EQ(b.arena().key(control::index_of(mr))->adopted.windows.load(), 0u);
  p.good(p.call(Code::DeregMr, IndexIn{mr, 0}));
}

TEST(Objects, ReregistrationKeepsTheKey) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t other_pd = p.pd();
  const auto mr = p.mr(pd);
  ReregMrIn in{mr.handle, 1 | 2 | 4, {other_pd, 3, 0x20000, 8192, 0x20000, kNoIndex, 0}};
  const auto changed = p.call<MrOut>(Code::ReregMr, in);
  EXPECT_EQ(changed.status, Status::Ok) << changed.reason;
  EXPECT_EQ(changed.out.rkey, mr.out.rkey);
  const hca::KeyEntry& entry = *b.arena().key(control::index_of(mr.handle));
  EXPECT_EQ(entry.id.length, 8192u);
  EXPECT_EQ(entry.id.access, 3u);
  EXPECT_EQ(entry.id.pd, control::index_of(other_pd));
  p.good(p.call(Code::DeallocPd, IndexIn{pd, 0}));
  EXPECT_EQ(p.call(Code::DeallocPd, IndexIn{other_pd, 0}).status, Status::DeviceBusy);
}

TEST(Objects, ACompletionQueueWithSeveralProducersIsShared) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  const std::uint32_t send_cq = p.cq();
  const std::uint32_t recv_cq = p.cq();
  const auto shared = [&](std::uint32_t cq) {
    return b.arena().cq(control::index_of(cq))->id.shared_producers.load();
  };
  CreateQpIn in = p.qp_in(QpType::Rc, pd, send_cq);
  in.recv_cq = recv_cq;
  const std::uint32_t first = p.good(p.call<QpOut>(Code::CreateQp, in));
  EXPECT_EQ(shared(send_cq), 0u);
  EXPECT_EQ(shared(recv_cq), 0u);
  const std::uint32_t second = p.good(p.call<QpOut>(Code::CreateQp, in));
  EXPECT_EQ(shared(send_cq), 1u);
  EXPECT_EQ(shared(recv_cq), 1u);
  p.good(p.call(Code::DestroyQp, IndexIn{second, 0}));
  EXPECT_EQ(shared(send_cq), 1u);
  p.good(p.call(Code::DestroyQp, IndexIn{first, 0}));
  EXPECT_EQ(shared(send_cq), 0u);
  in.type = QpType::Ud;
  p.good(p.call<QpOut>(Code::CreateQp, in));
  EXPECT_EQ(shared(send_cq), 0u);
  EXPECT_EQ(shared(recv_cq), 1u);
}

// Else their owner would write next where a poster has just read.
TEST(Objects, ReceiveRingsAreNeverFull) {
  for (const std::uint32_t max_wr : {1u, 4u, 28u, 60u, 128u, 508u, verbs::limits::kMaxQpWr}) {
    const std::uint32_t free = receive_slots(max_wr) - max_wr;
    EXPECT_GE(free, max_wr < 28 ? 4u : 24u) << max_wr;
    EXPECT_LE(receive_slots(max_wr), 4 * std::max(max_wr, 2u)) << max_wr;
  }
}

TEST(Objects, ResizingMovesWhatWasNotPolled) {
  Bench b;
  Process p(b, 11, "node0");
  const auto made = p.call<CqOut>(Code::CreateCq, CreateCqIn{5, kNoIndex, 0, 0, 0});
  ASSERT_EQ(made.out.slots, 8u);
  hca::CqEntry& entry = *b.arena().cq(control::index_of(made.handle));
  for (std::uint64_t position = 7; position < 10; ++position) {  // wraps
    hca::Cqe& cqe = b.cqe(made.out.ring, 8, position);
    cqe.wqe = static_cast<std::uint32_t>(position);
    cqe.seq.store(static_cast<std::uint32_t>(position / 8) + 1);
  }
  entry.consumer.consumer.store(7);
  entry.producer.producer.store(10);
  EXPECT_EQ(p.call<CqOut>(Code::ResizeCq, ResizeCqIn{made.handle, 2}).status,
            Status::InvalidParameter);
  const auto grown = p.call<CqOut>(Code::ResizeCq, ResizeCqIn{made.handle, 20});
  ASSERT_EQ(grown.status, Status::Ok) << grown.reason;
  EXPECT_EQ(grown.out.slots, 32u);
  for (std::uint64_t position = 7; position < 10; ++position) {
    const hca::Cqe& cqe = b.cqe(grown.out.ring, 32, position);
    EXPECT_EQ(cqe.wqe, position);
    EXPECT_EQ(cqe.seq.load(), 1u);
  }
  EXPECT_EQ(entry.id.ring_epoch.load(), 1u);
  EXPECT_EQ(entry.id.shared_producers.load(), 0u);
  EXPECT_EQ(entry.producer.lock.load(), 0u);
  EXPECT_EQ(b.core().memory.heap().pieces(), 1u);
}

TEST(Objects, LimitsAreThoseThatTheHcaReports) {
  Bench b;
  Process p(b, 11, "node0");
  const auto ca = p.call<CaAttr>(Code::QueryCa);
  ASSERT_EQ(ca.status, Status::Ok);
  const std::uint32_t pd = p.pd();
  const std::uint32_t cq = p.cq();
  CreateQpIn in = p.qp_in(QpType::Rc, pd, cq);
  in.caps.max_send_wr = ca.out.max_qp_wr + 1;
  EXPECT_EQ(p.call<QpOut>(Code::CreateQp, in).status, Status::InvalidParameter);
  in.caps = {ca.out.max_qp_wr, ca.out.max_qp_wr,  ca.out.max_sge,
             ca.out.max_sge,   ca.out.max_inline, 0};
  const auto made = p.call<QpOut>(Code::CreateQp, in);
  EXPECT_EQ(made.status, Status::Ok) << made.reason;
  EXPECT_GE(made.out.rq_slots, ca.out.max_qp_wr);
  in.caps.max_recv_wr = ca.out.max_qp_wr + 1;
  EXPECT_EQ(p.call<QpOut>(Code::CreateQp, in).status, Status::InvalidParameter);
  in.type = QpType::XrcSend;
  EXPECT_EQ(p.call<QpOut>(Code::CreateQp, in).status, Status::Ok) << "it has no receives";
  EXPECT_EQ(p.call<CqOut>(Code::CreateCq, CreateCqIn{ca.out.max_cqe + 1, kNoIndex, 0, 0, 0}).status,
            Status::InvalidParameter);
  EXPECT_EQ(p.call<CqOut>(Code::CreateCq, CreateCqIn{0, kNoIndex, 0, 0, 0}).status,
            Status::InvalidParameter);
}

TEST(Objects, MemoryLimitIsInsufficientResourcesWithAReason) {
  Bench b(1 << 20);
  Process p(b, 11, "node0");
  const auto reply = p.call<CqOut>(Code::CreateCq, CreateCqIn{100000, kNoIndex, 0, 0, 0});
  EXPECT_EQ(reply.status, Status::InsufficientResources);
  EXPECT_NE(reply.reason.find("--max-memory"), std::string::npos) << reply.reason;
}

TEST(Objects, BuffersOfTheWrongSizeAreRefused) {
  Bench b;
  Process p(b, 11, "node0");
  EXPECT_EQ(p.call(Code::DeallocPd, std::uint32_t{1}).status, Status::InvalidParameter);
  EXPECT_EQ(p.call(static_cast<Code>(999)).status, Status::NotSupported);
  EXPECT_EQ(p.root_call(static_cast<Code>(999)).status, Status::NotSupported);
}

TEST(Objects, XrcReceiveQueuePairLivesUntilTheLastHolderIsGone) {
  Bench b;
  Process a(b, 11, "node0");
  Process z(b, 12, "node0");
  const OpenXrcdIn shared{17, 4, 1, 0};
  const std::uint32_t in_a = a.good(a.call(Code::OpenXrcd, shared));
  const std::uint32_t in_z = z.good(z.call(Code::OpenXrcd, shared));
  EXPECT_EQ(in_a, in_z);
  CreateQpIn in;
  in.type = QpType::XrcRecv;
  in.xrcd = in_a;
  const auto made = a.call<QpOut>(Code::CreateQp, in);
  ASSERT_EQ(made.status, Status::Ok) << made.reason;
  const auto opened = z.call<QpOut>(Code::OpenQp, OpenQpIn{in_z, made.out.qpn, 5});
  ASSERT_EQ(opened.status, Status::Ok) << opened.reason;
  EXPECT_EQ(a.call(Code::CloseXrcd, IndexIn{in_a, 0}).status, Status::DeviceBusy);
  a.exit();
  EXPECT_EQ(b.arena().qp(control::index_of(opened.handle))->id.qpn.load(), made.out.qpn);
  EXPECT_EQ(b.arena().qp(control::index_of(opened.handle))->id.owner_slot, z.attach.slot);
  z.good(z.call(Code::DestroyQp, IndexIn{opened.handle, 0}));
  z.good(z.call(Code::CloseXrcd, IndexIn{in_z, 0}));
  EXPECT_EQ(b.objects(), 0u);
}

TEST(Objects, ClosingAFileTakesAllItHas) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t pd = p.pd();
  p.good(p.mr(pd));
  p.good(p.qp(QpType::Rc, pd, p.cq()));
  p.close_file();
  EXPECT_EQ(b.objects(), 0u);
}

// A place that is used again gets another handle, and a handle of one kind is invalid for others.
TEST(Handles, NameOneObjectOrNothing) {
  Bench b;
  Process p(b, 11, "node0");
  const std::uint32_t stale = p.pd();
  p.good(p.call(Code::DeallocPd, IndexIn{stale, 0}));
  const auto deallocate = [&](std::uint32_t handle) {
    return p.call(Code::DeallocPd, IndexIn{handle, 0}).status;
  };
  std::uint32_t again = 0;
  for (std::uint32_t i = 0; i < 2 * Table<Pd>::kRest && again == 0; ++i) {
    const std::uint32_t pd = p.pd();
    if (control::index_of(pd) == control::index_of(stale)) again = pd;
    if (again == 0) {
      EXPECT_EQ(deallocate(pd), Status::Ok);
    }
  }
  ASSERT_NE(again, 0u) << "the place never came back";
  EXPECT_NE(again, stale);
  EXPECT_EQ(deallocate(stale), Status::NotFound);
  const std::uint32_t cq = p.cq();
  EXPECT_EQ(deallocate(cq), Status::InvalidParameter) << "it names an object, of another kind";
  EXPECT_EQ(deallocate(control::index_of(again)), Status::NotFound);
  const std::uint32_t other_kind =
      control::handle_of(control::HandleKind::Pd, 0, control::index_of(cq));
  EXPECT_EQ(p.call(Code::DestroyCq, IndexIn{other_kind, 0}).status, Status::NotFound);
  EXPECT_EQ(deallocate(again), Status::Ok);
}

TEST(Handles, OneProcessLeavesSomethingForTheOthers) {
  Bench b;
  Process p(b, 11, "node0");
  Process other(b, 12, "node0");
  constexpr std::uint32_t kQuota = verbs::limits::quota_of_one(verbs::limits::kMaxXrcd);
  const control::OpenXrcdIn in{0, 0, 1, 0};
  for (std::uint32_t i = 0; i < kQuota; ++i) p.good(p.call(Code::OpenXrcd, in));
  const auto refused = p.call(Code::OpenXrcd, in);
  EXPECT_EQ(refused.status, Status::InsufficientResources);
  EXPECT_NE(refused.reason.find("one process"), std::string::npos) << refused.reason;
  other.good(other.call(Code::OpenXrcd, in));
}

// The numbers of the queue pairs that a poster finds on the chain of a group's GID.
std::vector<std::uint32_t> members_by_gid(const hca::Arena& arena, const verbs::Gid& mgid) {
  std::vector<std::uint32_t> qpns;
  const hca::Shared32* next = &arena.mcast_by_gid(hca::mcast_chain(mgid));
  for (std::uint32_t steps = 0; next->load() != 0 && steps < hca::kMaxMcast; ++steps) {
    const hca::McastEntry& entry = *arena.mcast(next->load() - 1);
    if (entry.mgid == mgid && entry.qpn.load() != 0) qpns.push_back(entry.qpn.load());
    next = &entry.next_by_gid;
  }
  std::sort(qpns.begin(), qpns.end());
  return qpns;
}
TEST(Ports, ALidThatAPortHasNoMoreLeadsNowhere) {
  Bench b;
  fabric::Hca& hca = b.fabric.nodes()[0].hcas[0];
  fabric::Port& one = hca.ports[0];
  fabric::Port& two = hca.ports[1];
  const auto publish = [&] {
    set_port_state(b.core(), one, false);
    set_port_state(b.core(), one, true);
  };
  const std::uint16_t old = one.lid;
  const std::uint16_t of_two = two.lid;
  ASSERT_EQ(b.arena().port_with_lid(old), 0u);

  ASSERT_EQ(b.fabric.graph().set_lid(one, 100), Status::Ok);
  publish();
  EXPECT_EQ(b.arena().port_with_lid(100), 0u);
  EXPECT_EQ(b.arena().port_with_lid(old), hca::kNone);

  // Each takes what the other had.
  ASSERT_EQ(b.fabric.graph().set_lid(two, 101), Status::Ok);
  ASSERT_EQ(b.fabric.graph().set_lid(one, of_two), Status::Ok);
  ASSERT_EQ(b.fabric.graph().set_lid(two, 100), Status::Ok);
  publish();
  EXPECT_EQ(b.arena().port_with_lid(of_two), 0u);
  EXPECT_EQ(b.arena().port_with_lid(100), 1u);

  // A program may write anything into device memory.
  sure(b.arena().port(0)).lid = 0xffff;
  publish();
  EXPECT_EQ(b.arena().port_with_lid(of_two), 0u);
}

std::size_t chain_length(const hca::Arena& arena, std::uint16_t mlid) {
  std::size_t length = 0;
  const hca::Shared32* next = &arena.mcast_by_lid(hca::mcast_chain(mlid));
  for (; next->load() != 0 && length < hca::kMaxMcast; ++length) {
    next = &arena.mcast(next->load() - 1)->next_by_lid;
  }
  return length;
}

TEST(Multicast, AMessageLooksAtItsOwnGroupOnly) {
  Bench b;
  Process p(b, 11, "node0");
  Process other(b, 12, "node1");
  const std::uint32_t pd = p.pd();
  const std::uint32_t cq = p.cq();
  std::vector<std::uint32_t> qps;
  std::vector<std::uint32_t> qpns;
  for (int i = 0; i < 3; ++i) {
    const auto made = p.qp(QpType::Ud, pd, cq);
    qps.push_back(p.good(made));
    qpns.push_back(made.out.qpn);
  }
  const auto group = [](std::uint32_t qp, std::uint8_t number) {
    McastIn in{qp, static_cast<std::uint16_t>(0xc000 + number), 0, {}};
    in.mgid[0] = 0xff;
    in.mgid[15] = number;
    return in;
  };
  for (std::uint8_t number = 0; number < 100; ++number) {
    for (const std::uint32_t qp : qps) p.good(p.call(Code::AttachMcast, group(qp, number)));
  }
  for (std::uint8_t number = 0; number < 100; ++number) {
    ASSERT_EQ(members_by_gid(b.arena(), group(0, number).mgid), qpns);
    ASSERT_EQ(chain_length(b.arena(), group(0, number).mlid), 3u);
  }
  // From the middle, the end and the beginning of a chain, and back again.
  for (const std::size_t who : {1u, 0u, 2u}) {
    p.good(p.call(Code::DetachMcast, group(qps[who], 7)));
    const auto left = members_by_gid(b.arena(), group(0, 7).mgid);
    EXPECT_EQ(std::count(left.begin(), left.end(), qpns[who]), 0);
  }
  EXPECT_EQ(chain_length(b.arena(), 0xc007), 0u);
  p.good(p.call(Code::AttachMcast, group(qps[1], 7)));
  EXPECT_EQ(members_by_gid(b.arena(), group(0, 7).mgid), std::vector{qpns[1]});
  // A process that ends leaves all its groups.
  const auto last = other.qp(QpType::Ud, other.pd(), other.cq());
  other.good(other.call(Code::AttachMcast, group(other.good(last), 8)));
  EXPECT_EQ(chain_length(b.arena(), 0xc008), 4u);
  p.exit();
  b.executor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(members_by_gid(b.arena(), group(0, 7).mgid).empty());
  EXPECT_EQ(members_by_gid(b.arena(), group(0, 8).mgid), std::vector{last.out.qpn});
  EXPECT_EQ(chain_length(b.arena(), 0xc008), 1u);
}

// Slots are used again before all were used, so that softibd stays as small as its processes are
// few; and none at once.
TEST(ProcessSlots, RestAndAreUsedAgain) {
  Bench b;
  std::set<std::uint32_t> slots;
  std::uint32_t last = hca::kNone;
  for (std::uint32_t pid = 100; pid < 400; ++pid) {
    Process p(b, pid, "node0");
    EXPECT_NE(p.attach.slot, last);
    last = p.attach.slot;
    slots.insert(last);
    p.exit();
    b.executor.advance(std::chrono::milliseconds(1));
  }
  EXPECT_LE(slots.size(), 65u);
  EXPECT_EQ(b.arena().header().slots_used.load(), slots.size());
}

// The bounce entries of all processes are looked at once for all of them.
TEST(ProcessSlots, OfManyThatEndAtOnceRestABitLater) {
  Bench b;
  std::vector<std::unique_ptr<Process>> processes;
  for (std::uint32_t pid = 100; pid < 200; ++pid) {
    processes.push_back(std::make_unique<Process>(b, pid, "node0"));
  }
  processes.clear();
  EXPECT_TRUE(b.core().sessions.empty());
  EXPECT_EQ(b.core().resting_slots.size(), 1u) << "that of the first";
  b.executor.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(b.core().resting_slots.size(), 100u);
  EXPECT_TRUE(b.core().settling.slots.empty());
}

}  // namespace
}  // namespace ib::drivers::test
