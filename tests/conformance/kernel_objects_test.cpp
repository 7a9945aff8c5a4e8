// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Objects of kernel clients beside queue pairs with receives of their own: shared receive queues,
// XRC, windows, MADs to the own port, and the list of HCAs.
#include "kernel_client.h"
#include "mad/smp.h"

#include <sys/resource.h>

#include <bit>
#include <cstring>

namespace ib::conformance {
namespace {

class KernelObjectsTest : public KernelClient {
 protected:
  void step(al::Qp& qp, QpType type, QpState from, const control::QpAttr& attr) {
    must([&](io::IrpRef irp) {
      al::modify_qp(qp, required(type, from, attr.state), attr, std::move(irp));
    });
  }
  // Connects to the queue pair `peer` of this port.
  void connect(al::Qp& qp, std::uint32_t peer) {
    const QpType type = qp.in.type;
    const Connection with;
    step(qp, type, QpState::Reset, init_attributes(with));
    control::QpAttr rtr = rtr_attributes(qb, qb, with);
    rtr.dest_qpn = peer;
    rtr.av = b->path_to(*b);
    step(qp, type, QpState::Init, rtr);
    if (type != QpType::XrcRecv) step(qp, type, QpState::Rtr, rts_attributes(with));
  }
  Status supply(al::Srq& to, std::uint64_t wr_id, const Sge& sge) {
    Status status = Status::Pending;
    on_loop([&] { status = al::post_recv(to, wr_id, {&sge, 1}); });
    return status;
  }
  Status post(al::Qp& qp, const hca::SendWqe& wqe) {
    Status status = Status::Pending;
    on_loop([&] { status = al::post_send(qp, wqe); });
    return status;
  }
  bool event_comes(verbs::EventType type) {
    return comes([&] {
      return std::any_of(events.begin(), events.end(),
                         [&](const control::EventOut& event) { return event.type == type; });
    });
  }
  // An RC queue pair with the shared queue, and its peer without one.
  void make_shared_pair() {
    make(QpType::Rc);
    lid = lid_of(*ca);
    must([&](io::IrpRef irp) { al::create_srq(pd, 16, 1, srq, std::move(irp)); });
    const control::QpCaps caps{16, 0, 2, 0, 64, 0};
    must([&](io::IrpRef irp) {
      al::create_srq_qp(pd, QpType::Rc, caps, cq, cq, srq, shared, std::move(irp));
    });
    qb = b->new_qp({});  // for rtr_attributes
    connect(shared, kq.made.qpn);
    connect(kq, shared.made.qpn);
  }

  al::Srq srq;
  al::Qp shared;
};
IB_EVERY_SETTING(KernelObjectsTest);

TEST_P(KernelObjectsTest, ASharedQueueFeedsItsQueuePairs) {
  make_shared_pair();
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(srq, std::move(irp)); }),
            Status::DeviceBusy);
  for (const std::uint32_t bytes : {8u, 64u, 4000u}) {
    EXPECT_EQ(supply(srq, bytes, piece(4096, 4096)), Status::Ok);
    on_loop([&] { std::memset(memory.bytes, static_cast<int>(bytes & 0xff), bytes); });
    EXPECT_EQ(KernelClient::post(WrOpcode::Send, 1, piece(0, bytes)), Status::Ok);
    Completion got = one(cq);
    if (got.opcode != WcOpcode::Recv) got = one(cq);
    EXPECT_EQ(got.wr_id, bytes);
    EXPECT_EQ(got.byte_len, bytes);
    EXPECT_EQ(got.qpn, shared.made.qpn);
    on_loop([&] { EXPECT_EQ(std::memcmp(memory.bytes, memory.bytes + 4096, bytes), 0); });
    on_loop([&] {
      Completion rest;
      (void)al::poll(cq, {&rest, 1});
    });
  }
  gone(shared);
  gone(srq);
  end();
}

// Completions from before the reset are unpolled; they must not end a receive that is posted later.
TEST_P(KernelObjectsTest, AResetForgetsWhatWasNotPolled) {
  make_shared_pair();
  EXPECT_EQ(receive(77, piece(4096, 64)), Status::Ok);
  hca::SendWqe nothing;
  nothing.wr_id = 1;
  nothing.flags = send_flag::kSignaled;
  EXPECT_EQ(post(shared, nothing), Status::Ok);
  EXPECT_TRUE(comes([&] { return kq.own.entry().responder.rq_head.load() == 1; }));
  control::QpAttr reset;
  reset.state = QpState::Reset;
  must([&](io::IrpRef irp) { al::modify_qp(kq, verbs::qp_attr::kState, reset, std::move(irp)); });
  step(kq, QpType::Rc, QpState::Reset, init_attributes({}));
  EXPECT_EQ(receive(88, piece(4096, 64)), Status::Ok);
  const Completion sent = one(cq);
  EXPECT_EQ(sent.wr_id, 1u);
  EXPECT_EQ(sent.qpn, shared.made.qpn);
  on_loop([&] {
    Completion more;
    EXPECT_EQ(al::poll(cq, {&more, 1}), 0u) << "of before the reset: wr_id " << more.wr_id;
  });
  gone(shared);
  gone(srq);
  end();
}

// A receive of the shared queue that a destroyed queue pair had taken is free again.
TEST_P(KernelObjectsTest, AQueuePairThatGoesGivesReceivesBack) {
  make_shared_pair();
  constexpr std::uint64_t kDepth = 16;  // make_shared_pair()
  for (std::uint64_t i = 0; i < kDepth; ++i) {
    EXPECT_EQ(supply(srq, i, piece(4096, 64)), Status::Ok);
  }
  EXPECT_EQ(supply(srq, kDepth, piece(4096, 64)), Status::LimitExceeded);
  EXPECT_EQ(KernelClient::post(WrOpcode::Send, 1, piece(0, 8)), Status::Ok);
  EXPECT_TRUE(comes([&] { return kq.own.entry().requester.messages.load() == 1; }));
  gone(shared);
  EXPECT_EQ(supply(srq, kDepth, piece(4096, 64)), Status::Ok);
  EXPECT_EQ(one(cq).wr_id, 1u);  // the sender's
  on_loop([&] {
    Completion more;
    EXPECT_EQ(al::poll(cq, {&more, 1}), 0u);
  });
  gone(kq);
  gone(srq);
  end();
}

TEST_P(KernelObjectsTest, ASharedQueueSaysWhenItRunsLowAndWhenAQueuePairIsDone) {
  make_shared_pair();
  EXPECT_EQ(supply(srq, 1, piece(4096, 64)), Status::Ok);
  EXPECT_EQ(supply(srq, 2, piece(4096, 64)), Status::Ok);
  must([&](io::IrpRef irp) { al::arm_srq(srq, 2, std::move(irp)); });
  EXPECT_EQ(KernelClient::post(WrOpcode::Send, 1, piece(0, 8)), Status::Ok);
  EXPECT_TRUE(event_comes(verbs::EventType::SrqLimitReached));
  control::SrqOut now;
  must([&](io::IrpRef irp) { al::query_srq(srq, now, std::move(irp)); });
  EXPECT_EQ(now.limit, 0u);
  control::QpAttr error;
  error.state = QpState::Error;
  step(shared, QpType::Rc, QpState::Rts, error);
  EXPECT_TRUE(event_comes(verbs::EventType::QpLastWqeReached));
  gone(shared);
  gone(srq);
  end();
}

TEST_P(KernelObjectsTest, XrcMessagesNameTheSharedQueueThatGetsThem) {
  make(QpType::Rc);
  lid = lid_of(*ca);
  qb = b->new_qp({});
  al::Xrcd xrcd;
  al::Qp sender;
  al::Qp receiver;
  const control::QpCaps caps{16, 0, 2, 0, 64, 0};
  must([&](io::IrpRef irp) { al::open_xrcd(*ca, xrcd, std::move(irp)); });
  must([&](io::IrpRef irp) { al::create_xrc_srq(pd, xrcd, cq, 16, 1, srq, std::move(irp)); });
  must([&](io::IrpRef irp) { al::create_xrc_recv_qp(xrcd, receiver, std::move(irp)); });
  must([&](io::IrpRef irp) { al::create_xrc_send_qp(pd, caps, cq, sender, std::move(irp)); });
  connect(receiver, sender.made.qpn);
  connect(sender, receiver.made.qpn);
  EXPECT_EQ(supply(srq, 5, piece(4096, 64)), Status::Ok);
  on_loop([&] { std::memset(memory.bytes, 0x5a, 64); });
  const Sge sge = piece(0, 64);
  hca::SendWqe wqe;
  wqe.wr_id = 6;
  wqe.flags = send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.remote_srqn = srq.made.srqn;
  EXPECT_EQ(post(sender, wqe), Status::Ok);
  EXPECT_EQ(one(cq).wr_id + one(cq).wr_id, 11u);
  on_loop([&] { EXPECT_EQ(std::memcmp(memory.bytes, memory.bytes + 4096, 64), 0); });
  // A queue pair that only receives has no send queue.
  EXPECT_EQ(post(receiver, wqe), Status::InvalidParameter);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(xrcd, std::move(irp)); }),
            Status::DeviceBusy);
  gone(sender);
  gone(receiver);
  gone(srq);
  gone(xrcd);
  end();
}

TEST_P(KernelObjectsTest, AWindowOpensAPartOfARegionUntilItIsUnbound) {
  connect_to_b(QpType::Rc);
  al::Region own;
  must([&](io::IrpRef irp) {
    al::reg_dm(pd, memory, access::kLocalWrite | access::kMwBind, own, std::move(irp));
  });
  al::Window window;
  must([&](io::IrpRef irp) { al::alloc_mw(pd, 1, window, std::move(irp)); });
  const std::uint32_t first = window.rkey;
  const auto bind = [&](std::uint64_t length) {
    const al::Bind to{9, &own, 1024, length, access::kRemoteWrite};
    Status status = Status::Pending;
    on_loop([&] { status = al::bind(kq, window, to); });
    ASSERT_EQ(status, Status::Ok);
    const Completion bound = one(cq);
    EXPECT_EQ(bound.status, WcStatus::Success);
    EXPECT_EQ(bound.wr_id, 9u);
  };
  bind(100);
  EXPECT_NE(window.rkey, first);
  const Region mb = b->region(4096);
  mb.fill(7);
  Work write = rdma(WrOpcode::RdmaWrite, 3, {mb.sge(0, 100)}, window.rkey, 1024);
  qb.send(write);
  b->cq().one(WcStatus::Success);
  const auto written = mb.bytes(0, 100);
  on_loop([&] { EXPECT_EQ(std::memcmp(memory.bytes + 1024, written.data(), 100), 0); });
  // Binding again voids the old key, and memory beyond the new bounds is not accessible.
  bind(50);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(own, std::move(irp)); }),
            Status::DeviceBusy);
  qb.send(write);
  b->cq().one(WcStatus::RemAccessErr);
  gone(window);
  gone(own);
  end();
}

TEST_P(KernelObjectsTest, AnFmrCoversWhatItWasMappedToLast) {
  connect_to_b(QpType::Rc);
  std::vector<std::byte> first(4096);
  std::vector<std::byte> second(4096);
  al::Fmr fmr;
  must([&](io::IrpRef irp) {
    al::alloc_fmr(pd, 4096, access::kLocalWrite | access::kRemoteWrite, fmr, std::move(irp));
  });
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::map_fmr(fmr, first.data(), 4097, std::move(irp)); }),
            Status::InvalidParameter);
  const Region mb = b->region(4096);
  mb.fill(7);
  const auto written = mb.bytes(0, 4096);
  for (std::vector<std::byte>* to : {&first, &second}) {
    must([&](io::IrpRef irp) { al::map_fmr(fmr, to->data(), 4096, std::move(irp)); });
    Work write = rdma(WrOpcode::RdmaWrite, 3, {mb.sge(0, 4096)}, fmr.made.rkey,
                      std::bit_cast<std::uint64_t>(to->data()));
    qb.send(write);
    b->cq().one(WcStatus::Success);
    EXPECT_EQ(std::memcmp(to->data(), written.data(), 4096), 0);
    // The local key works too: memory of the region can be sent from.
    const Sge sge{write.remote_address, 8, fmr.made.lkey};
    EXPECT_EQ(KernelClient::post(WrOpcode::RdmaWrite, 4, sge, mb.at(0), mb.rkey), Status::Ok);
    EXPECT_EQ(one(cq).status, WcStatus::Success);
  }
  must([&](io::IrpRef irp) { al::unmap_fmr(fmr, std::move(irp)); });
  Work write = rdma(WrOpcode::RdmaWrite, 5, {mb.sge(0, 8)}, fmr.made.rkey,
                    std::bit_cast<std::uint64_t>(second.data()));
  qb.send(write);
  b->cq().one(WcStatus::RemAccessErr);
  gone(fmr);
  end();
}

// More data than one buffer of the bounce path, in both directions, and an atomic.
TEST_P(KernelObjectsTest, ProgramsReachLongVirtualRegions) {
  connect_to_b(QpType::Rc);
  constexpr std::uint32_t kBytes = 200'000;
  std::vector<std::byte> mine(kBytes);
  const auto address = std::bit_cast<std::uint64_t>(mine.data());
  al::Region region2;
  must([&](io::IrpRef irp) {
    al::reg_mr(pd, mine.data(), kBytes, access::kLocalWrite | access::kRemoteAny, region2,
               std::move(irp));
  });
  const Region mb = b->region(kBytes);
  mb.fill(3);
  const auto sent = mb.bytes(0, kBytes);
  Work write = rdma(WrOpcode::RdmaWrite, 1, {mb.sge(0, kBytes)}, region2.made.rkey, address);
  qb.send(write);
  b->cq().one(WcStatus::Success);
  EXPECT_EQ(std::memcmp(mine.data(), sent.data(), kBytes), 0);
  Work add = rdma(WrOpcode::AtomicFetchAdd, 2, {mb.sge(0, 8)}, region2.made.rkey, address);
  add.compare_add = 1;
  qb.send(add);
  b->cq().one(WcStatus::Success);
  mb.fill(9);
  Work read = rdma(WrOpcode::RdmaRead, 3, {mb.sge(0, kBytes)}, region2.made.rkey, address);
  qb.send(read);
  b->cq().one(WcStatus::Success);
  std::uint64_t first = 0;
  std::memcpy(&first, sent.data(), sizeof first);
  EXPECT_EQ(mb.word(0), first + 1);
  EXPECT_EQ(mb.bytes(8, kBytes - 8), std::vector(sent.begin() + 8, sent.end()));
  gone(region2);
  end();
}

TEST_P(KernelObjectsTest, AMadToTheOwnPortIsAnsweredInTheCall) {
  control::MadIn in;
  in.port = 1;
  mad::Smp smp;
  smp.header = {1,  mad::mgmt_class::kSubnLid,
                1,  mad::method::kGet,
                0,  0,
                42, mad::smp_attribute::kNodeInfo,
                0,  0};
  std::memcpy(in.mad.data(), &smp, sizeof smp);
  control::MadOut out;
  constexpr int kMany = 1000;
  int answered = 0;
  long switches = -1;
  on_loop([&] {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < kMany; ++i) {
      io::Irp irp;
      ca->local_mad(
          in, out,
          irp.start([](io::Irp&, void* count) { ++*static_cast<int*>(count); }, &answered));
      EXPECT_EQ(answered, i + 1) << "it was not answered before the call returned";
    }
    getrusage(RUSAGE_THREAD, &after);
    switches = after.ru_nvcsw - before.ru_nvcsw;
  });
  EXPECT_EQ(answered, kMany);
  // A lock that another thread has costs one now and then.
  EXPECT_LT(switches, kMany / 10) << "the thread waits for another one";
  std::memcpy(&smp, out.mad.data(), sizeof smp);
  EXPECT_EQ(smp.header.method, mad::method::kGetResp);
  EXPECT_EQ(smp.header.status, 0u);
  EXPECT_EQ(smp.header.transaction_id, 42u);
  mad::NodeInfo info;
  std::memcpy(&info, smp.data.data(), sizeof info);
  EXPECT_EQ(info.node_guid, ca->info().ca.node_guid);
}

TEST_P(KernelObjectsTest, KnowsTheHcasOfItsHost) {
  bool found = false;
  for (const control::CaName& name : al->cas()) found |= name.node_guid == ca->info().ca.node_guid;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace ib::conformance
