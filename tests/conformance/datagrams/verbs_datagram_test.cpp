// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unreliable datagrams and multicast [IBA1 9.8.3, 10.5.2].
#include "verbs/gid.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ib::conformance {
namespace {

constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint32_t kMulticastQpn = 0xffffff;

void up(const Qp& qp, const Connection& with = {}) {
  to_init(qp, QpType::Ud, with);
  control::QpAttr attr;
  attr.state = QpState::Rtr;
  EXPECT_EQ(qp.try_modify(qp_attr::kState, attr), Status::Ok) << qp.side->reason();
  to_rts(qp, QpType::Ud, with);
}

verbs::AddressVector global(verbs::AddressVector av, const verbs::Gid& to) {
  av.is_global = 1;
  av.dgid = to;
  av.hop_limit = 64;
  av.traffic_class = 0x5a;
  av.flow_label = 0x12345;
  return av;
}

class Ud : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    qa = a->new_qp({QpType::Ud});
    qb = b->new_qp({QpType::Ud});
    up(qa);
    up(qb);
    address = a->new_address(a->path_to(*b));
    ma = a->region(16384);
    mb = b->region(16384);
  }
  Work to_b(std::uint64_t wr_id, std::vector<Sge> sge) const {
    Work work = send_work(wr_id, std::move(sge));
    work.address = address;
    work.remote_qpn = qb.qpn;
    work.remote_qkey = kQkey;
    return work;
  }
  // Each datagram between Ethernet ports is global.
  static std::uint32_t route_flag() { return is_ethernet() ? wc_flag::kGrh : 0; }
  // Sends a message that B must not receive; the sender does not notice the loss.
  void expect_lost(const Work& work) {
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, work.wr_id);
    EXPECT_TRUE(b->cq().stays_empty());
  }
  // [RFC 791 3.1]: version and length, type of service, total length (IP, UDP, BTH, DETH, padded
  // payload, ICRC), time to live, protocol, addresses.
  void expect_ipv4(const std::vector<std::uint8_t>& header) const {
    EXPECT_EQ(header[20], 0x45);
    EXPECT_EQ(header[21], 0x5a);
    EXPECT_EQ(header[22] * 256 + header[23], 20 + 8 + 12 + 8 + 104 + 4);
    EXPECT_EQ(header[28], 64);
    EXPECT_EQ(header[29], 17);
    EXPECT_TRUE(std::equal(header.begin() + 32, header.begin() + 36, a->info().gid.begin() + 12));
    EXPECT_TRUE(std::equal(header.begin() + 36, header.end(), b->info().gid.begin() + 12));
  }
  std::uint32_t address = kNoHandle;
  Region ma;
  Region mb;
};
IB_EVERY_SETTING(Ud);

TEST_P(Ud, ADatagramComesFortyBytesIntoTheReceive) {
  ma.fill(1);
  for (const std::uint32_t size : {0u, 1u, 23u, 24u, 25u, 64u, 1000u, 4096u}) {
    mb.fill(2, 0, size + 100);
    qb.receive(1, {mb.sge(0, kGrh + size)});
    qa.send(to_b(2, {ma.sge(3, size)}));
    EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::Send);
    const Completion received = b->cq().one(WcStatus::Success);
    EXPECT_EQ(received.byte_len, kGrh + size);
    EXPECT_EQ(received.src_qp, qa.qpn);
    EXPECT_EQ(received.qpn, qb.qpn);
    EXPECT_EQ(received.slid, a->info().port.lid);
    EXPECT_EQ(received.flags, route_flag());
    EXPECT_EQ(mb.mismatches(1, kGrh, size, 3), 0u) << size;
    EXPECT_EQ(mb.mismatches(2, kGrh + size, 50, kGrh + size), 0u) << size;
    if (is_ethernet()) continue;
    EXPECT_EQ(mb.mismatches(2, 0, kGrh), 0u) << "without a GRH these bytes are left alone";
  }
}

TEST_P(Ud, AGlobalDatagramBringsItsRouteHeader) {
  ma.fill(1);
  Work work = to_b(2, {ma.sge(0, 101)});
  work.address = a->new_address(global(a->path_to(*b), b->info().gid));
  qb.receive(1, {mb.sge(0, 200)});
  qa.send(work);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.flags & wc_flag::kGrh, wc_flag::kGrh);
  EXPECT_EQ(received.byte_len, 141u);
  EXPECT_EQ(mb.mismatches(1, kGrh, 101), 0u);
  const auto header = mb.bytes(0, kGrh);
  if (is_ethernet()) return expect_ipv4(header);
  // [IBA1 8.3]: version 6, traffic class, flow label, payload length, next header, hop limit.
  EXPECT_EQ((std::vector<std::uint8_t>(header.begin(), header.begin() + 4)),
            (std::vector<std::uint8_t>{0x65, 0xa1, 0x23, 0x45}));
  EXPECT_EQ(header[4] * 256 + header[5], 12 + 8 + 104 + 4);  // BTH, DETH, padded payload, ICRC
  EXPECT_EQ(header[6], 0x1b);
  EXPECT_EQ(header[7], 64);
  EXPECT_TRUE(std::equal(header.begin() + 8, header.begin() + 24, a->info().gid.begin()));
  EXPECT_TRUE(std::equal(header.begin() + 24, header.end(), b->info().gid.begin()));
}

TEST_P(Ud, TheHeaderMayEndInAnyElement) {
  QpSpec spec;
  spec.type = QpType::Ud;
  spec.caps.max_recv_sge = 4;
  const Qp split = b->new_qp(spec);
  up(split);
  ma.fill(1);
  mb.fill(2);
  Work work = to_b(1, {ma.sge(0, 60)});
  work.remote_qpn = split.qpn;
  split.receive(1, {mb.sge(0, 33), mb.sge(100, 20), mb.sge(200, 100)});
  qa.send(work);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, 100u);
  if (is_ethernet()) {
    EXPECT_EQ(mb.bytes(20, 1)[0], 0x45) << "the IPv4 header";
    EXPECT_EQ(mb.bytes(106, 1)[0], b->info().gid[15]) << "its last byte, of the destination";
  } else {
    EXPECT_EQ(mb.mismatches(2, 0, 33), 0u);
    EXPECT_EQ(mb.mismatches(2, 100, 7, 100), 0u);
  }
  EXPECT_EQ(mb.mismatches(1, 107, 13, 0), 0u);
  EXPECT_EQ(mb.mismatches(1, 200, 47, 13), 0u);
}

TEST_P(Ud, AnImmediateComesAlong) {
  qb.receive(1, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.opcode = WrOpcode::SendWithImm;
  work.imm = 0x0a0b0c0d;
  qa.send(work);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.flags, wc_flag::kWithImm | route_flag());
  EXPECT_EQ(received.imm, 0x0a0b0c0du);
}

TEST_P(Ud, InlineDataNeedsNoKey) {
  const std::uint64_t plain = a->new_memory(4096);
  const Region view{a.get(), kNoHandle, 0, 0, plain, plain, 4096};
  view.fill(9, 0, 100);
  qb.receive(1, {mb.sge(0, 200)});
  Work work = to_b(1, {view.sge(0, 100)});
  work.flags |= send_flag::kInline;
  qa.send(work);
  (void)b->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.mismatches(9, kGrh, 100), 0u);
}

TEST_P(Ud, WhatFindsNoReceiveIsLost) {
  expect_lost(to_b(1, {ma.sge(0, 8)}));
  qb.receive(5, {mb.sge(0, 100)});
  qa.send(to_b(2, {ma.sge(0, 8)}));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u);
}

TEST_P(Ud, AWrongQkeyIsNotLetIn) {
  qb.receive(5, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.remote_qkey = kQkey ^ 1;
  expect_lost(work);
}

TEST_P(Ud, AQkeyWithItsTopBitSetMeansTheSendersOwn) {
  qb.receive(5, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.remote_qkey = 0x80000000 | 0x1234;
  qa.send(work);
  (void)b->cq().one(WcStatus::Success);
}

TEST_P(Ud, AnUnknownQueuePairGetsNothing) {
  qb.receive(5, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  for (const std::uint32_t qpn : {0u, 0x123456u, qb.qpn ^ 0x800000u}) {
    work.remote_qpn = qpn;
    expect_lost(work);
  }
}

TEST_P(Ud, AConnectedQueuePairTakesNoDatagrams) {
  const Qp rc = b->new_qp();
  const Qp other = a->new_qp();
  connect(rc, other, QpType::Rc);
  rc.receive(5, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.remote_qpn = rc.qpn;
  expect_lost(work);
}

class UdByLid : public Ud {};
IB_INFINIBAND_SETTINGS(UdByLid);

TEST_P(UdByLid, AWrongLidReachesNobody) {
  qb.receive(5, {mb.sge(0, 100)});
  verbs::AddressVector av = a->path_to(*b);
  av.dlid = static_cast<std::uint16_t>(av.dlid + 100);
  Work work = to_b(1, {ma.sge(0, 8)});
  work.address = a->new_address(av);
  expect_lost(work);
}

TEST_P(Ud, AQueuePairThatIsNotReadyTakesNoDatagrams) {
  const Qp early = b->new_qp({QpType::Ud});
  to_init(early, QpType::Ud);
  early.receive(5, {mb.sge(0, 100)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.remote_qpn = early.qpn;
  expect_lost(work);
}

TEST_P(Ud, AMessageAboveTheMtuIsRefused) {
  qa.send(to_b(1, {ma.sge(0, 4097)}));
  EXPECT_EQ(a->cq().one(WcStatus::LocLenErr).vendor_err,
            static_cast<std::uint32_t>(Cause::LocalLength));
  EXPECT_EQ(qa.state(), QpState::Sqe);
  EXPECT_TRUE(b->cq().drain().empty());
}

TEST_P(Ud, AnOwnErrorStopsTheSendQueueUntilItIsSetGoing) {
  Sge bad = ma.sge(0, 8);
  bad.lkey ^= 7;
  qa.send(to_b(1, {bad}));
  EXPECT_EQ(a->cq().one(WcStatus::LocProtErr).vendor_err,
            static_cast<std::uint32_t>(Cause::LocalKeyUnknown));
  EXPECT_EQ(qa.state(), QpState::Sqe);
  qa.send(to_b(2, {ma.sge(0, 8)}));
  EXPECT_EQ(a->cq().one(WcStatus::WrFlushErr).wr_id, 2u);
  qa.to(QpState::Rts);
  qb.receive(5, {mb.sge(0, 100)});
  qa.send(to_b(3, {ma.sge(0, 8)}));
  EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, 3u);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u);
}

TEST_P(Ud, WhatDoesNotFitIsLost) {
  mb.fill(4);
  qb.receive(5, {mb.sge(0, kGrh + 7)});
  expect_lost(to_b(1, {ma.sge(0, 8)}));
  EXPECT_EQ(qb.state(), QpState::Rts);
  EXPECT_EQ(mb.mismatches(4, 0, 100), 0u) << "nothing is written";
  qa.send(to_b(2, {ma.sge(0, 7)}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u) << "the receive is still there";
}

TEST_P(Ud, WhatDoesNotFitIsLostWithASharedReceiveQueueToo) {
  const Srq srq = b->new_srq();
  QpSpec spec{QpType::Ud};
  spec.srq = srq.handle;
  const Qp shared = b->new_qp(spec);
  up(shared);
  srq.receive(5, {mb.sge(0, kGrh + 7)});
  Work work = to_b(1, {ma.sge(0, 8)});
  work.remote_qpn = shared.qpn;
  expect_lost(work);
  EXPECT_EQ(shared.state(), QpState::Rts);
  work.sge = {ma.sge(0, 7)};
  qa.send(work);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u) << "the receive is still there";
}

TEST_P(Ud, AGlobalAddressNeedsNoLid) {
  const verbs::AddressVector direct = a->path_to(*b);
  verbs::AddressVector av = global(direct, b->info().gid);
  av.dlid = 0;
  Work work = to_b(1, {ma.sge(0, 8)});
  work.address = a->new_address(av);
  qb.receive(5, {mb.sge(0, 100)});
  qa.send(work);
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).flags & wc_flag::kGrh, wc_flag::kGrh);
  av.dgid[12] ^= 0x55;  // of no port
  EXPECT_EQ(a->call(Command::CreateAddress, Message().put(a->pd()).put(av)).status,
            Status::InvalidParameter);
}

TEST_P(Ud, ABadKeyOfAReceiveBreaksItsOwner) {
  qb.receive(5, {{mb.at(0), 100, mb.lkey ^ 3}});
  qa.send(to_b(1, {ma.sge(0, 8)}));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::LocProtErr).wr_id, 5u);
  EXPECT_TRUE(qb.reaches(QpState::Error));
}

TEST_P(Ud, OnlySendsExist) {
  for (const WrOpcode opcode :
       {WrOpcode::RdmaWrite, WrOpcode::RdmaWriteWithImm, WrOpcode::RdmaRead,
        WrOpcode::AtomicCmpSwap, WrOpcode::AtomicFetchAdd, WrOpcode::AtomicWrite, WrOpcode::Flush,
        WrOpcode::SendWithInv, WrOpcode::LocalInv, WrOpcode::BindMw}) {
    Work work = to_b(1, {ma.sge(0, 8)});
    work.opcode = opcode;
    EXPECT_EQ(qa.try_send(work), Status::InvalidParameter) << static_cast<std::uint32_t>(opcode);
  }
  EXPECT_TRUE(a->cq().drain().empty());
}

TEST_P(Ud, ASendNeedsAnAddress) {
  Work work = to_b(1, {ma.sge(0, 8)});
  work.address = kNoHandle;
  EXPECT_EQ(qa.try_send(work), Status::InvalidParameter);
}

TEST_P(Ud, AQueuePairMaySendToItself) {
  ma.fill(1);
  qa.receive(5, {ma.sge(8192, 200)});
  Work work = to_b(1, {ma.sge(0, 100)});
  work.remote_qpn = qa.qpn;
  work.address = a->new_address(a->path_to(*a));
  qa.send(work);
  EXPECT_EQ(a->cq().wait(2).size(), 2u);
  EXPECT_EQ(ma.mismatches(1, 8192 + kGrh, 100), 0u);
}

TEST_P(Ud, ManySendersShareOneReceiveQueue) {
  std::vector<Qp> senders;
  for (int i = 0; i < 4; ++i) {
    senders.push_back(a->new_qp({QpType::Ud}));
    up(senders.back());
  }
  for (std::uint64_t i = 0; i < 40; ++i) qb.receive(i, {mb.sge(i * 64, 64)});
  for (std::uint64_t i = 0; i < 40; ++i) {
    ma.set_word(0, i);
    senders[i % 4].send(to_b(i, {ma.sge(0, 8)}));
  }
  const auto received = b->cq().wait(40);
  ASSERT_EQ(received.size(), 40u);
  for (std::uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].src_qp, senders[i % 4].qpn);
    EXPECT_EQ(mb.word(i * 64 + kGrh), i);
  }
  EXPECT_EQ(a->cq().wait(40).size(), 40u);
}

// --- Multicast ---

class Multicast : public Ud {
 protected:
  static verbs::Gid group(std::uint8_t last) {
    if (is_ethernet()) return verbs::ipv4_gid(0xe1000000u + last);  // 225.0.0.x
    verbs::Gid gid{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
    gid[15] = last;
    return gid;
  }
  static constexpr std::uint16_t kMlid = 0xc007;
  Status attach(const Qp& qp, const verbs::Gid& gid, std::uint16_t mlid = kMlid) {
    return qp.side->call(Command::AttachGroup, Message().put(qp.handle).put(gid).put(mlid)).status;
  }
  Status detach(const Qp& qp, const verbs::Gid& gid, std::uint16_t mlid = kMlid) {
    return qp.side->call(Command::DetachGroup, Message().put(qp.handle).put(gid).put(mlid)).status;
  }
  Work to_group(std::uint64_t wr_id, const verbs::Gid& gid) {
    verbs::AddressVector av = global(a->path_to(*b), gid);
    av.dlid = kMlid;
    Work work = to_b(wr_id, {ma.sge(0, 64)});
    work.address = a->new_address(av);
    work.remote_qpn = kMulticastQpn;
    return work;
  }
};
IB_EVERY_SETTING(Multicast);

TEST_P(Multicast, EveryAttachedQueuePairGetsACopy) {
  const Qp second = b->new_qp({QpType::Ud});
  const Qp outsider = b->new_qp({QpType::Ud});
  up(second);
  up(outsider);
  ma.fill(1);
  EXPECT_EQ(attach(qb, group(1)), Status::Ok) << b->reason();
  EXPECT_EQ(attach(second, group(1)), Status::Ok) << b->reason();
  EXPECT_EQ(attach(outsider, group(2)), Status::Ok) << b->reason();
  qb.receive(1, {mb.sge(0, 200)});
  second.receive(2, {mb.sge(200, 200)});
  outsider.receive(3, {mb.sge(400, 200)});
  qa.send(to_group(9, group(1)));
  (void)a->cq().one(WcStatus::Success);
  const auto received = b->cq().wait(2);
  ASSERT_EQ(received.size(), 2u);
  for (const Completion& copy : received) {
    EXPECT_NE(copy.wr_id, 3u);
    EXPECT_EQ(copy.byte_len, kGrh + 64u);
    EXPECT_EQ(copy.flags & wc_flag::kGrh, wc_flag::kGrh);
    EXPECT_EQ(copy.src_qp, qa.qpn);
  }
  EXPECT_EQ(mb.mismatches(1, kGrh, 64), 0u);
  EXPECT_EQ(mb.mismatches(1, 200 + kGrh, 64), 0u);
  const std::size_t length = is_ethernet() ? 4 : 16;
  const auto destination = mb.bytes(kGrh - length, length);
  EXPECT_TRUE(std::equal(destination.begin(), destination.end(),
                         group(1).end() - static_cast<std::ptrdiff_t>(length)));
  EXPECT_TRUE(b->cq().stays_empty());
  for (const auto& [qp, n] : {std::pair{qb, 1}, {second, 1}, {outsider, 2}}) {
    EXPECT_EQ(detach(qp, group(static_cast<std::uint8_t>(n))), Status::Ok);
  }
}

TEST_P(Multicast, AMemberWithoutAReceiveCostsTheOthersNothing) {
  const Qp second = b->new_qp({QpType::Ud});
  up(second);
  EXPECT_EQ(attach(qb, group(1)), Status::Ok);
  EXPECT_EQ(attach(second, group(1)), Status::Ok);
  second.receive(2, {mb.sge(200, 200)});
  qa.send(to_group(9, group(1)));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 2u);
  EXPECT_EQ(detach(qb, group(1)), Status::Ok);
  EXPECT_EQ(detach(second, group(1)), Status::Ok);
}

TEST_P(Multicast, NobodyGetsAnythingAfterDetaching) {
  EXPECT_EQ(attach(qb, group(1)), Status::Ok);
  EXPECT_EQ(detach(qb, group(1)), Status::Ok);
  qb.receive(1, {mb.sge(0, 200)});
  qa.send(to_group(9, group(1)));
  (void)a->cq().one(WcStatus::Success);
  EXPECT_TRUE(b->cq().stays_empty());
  EXPECT_NE(detach(qb, group(1)), Status::Ok);
}

TEST_P(Multicast, TheSenderGetsItsOwnCopyUnlessItAskedNotTo) {
  QpSpec quiet;
  quiet.type = QpType::Ud;
  quiet.flags = 1;  // block self multicast loopback
  const Qp silent = a->new_qp(quiet);
  up(silent);
  for (const Qp& sender : {qa, silent}) {
    EXPECT_EQ(attach(sender, group(3)), Status::Ok) << a->reason();
    sender.receive(1, {ma.sge(8192, 200)});
    sender.send(to_group(9, group(3)));
    const bool gets_it = sender.handle == qa.handle;
    EXPECT_EQ(a->cq().wait(gets_it ? 2 : 1).size(), gets_it ? 2u : 1u);
    if (!gets_it) {
      EXPECT_TRUE(a->cq().stays_empty());
    }
    EXPECT_EQ(detach(sender, group(3)), Status::Ok);
  }
}

TEST_P(Multicast, AQueuePairInAGroupIsBusy) {
  EXPECT_EQ(attach(qb, group(1)), Status::Ok);
  EXPECT_EQ(qb.try_destroy(), Status::DeviceBusy);
  EXPECT_EQ(detach(qb, group(1)), Status::Ok);
  EXPECT_EQ(qb.try_destroy(), Status::Ok);
}

TEST_P(Multicast, OnlyDatagramQueuePairsJoinAndOnlyGroups) {
  const Qp rc = b->new_qp();
  EXPECT_EQ(attach(rc, group(1)), Status::InvalidParameter);
  verbs::Gid unicast = group(1);
  unicast[0] = 0xfe;
  EXPECT_EQ(attach(qb, unicast), Status::InvalidParameter);
}

}  // namespace
}  // namespace ib::conformance
