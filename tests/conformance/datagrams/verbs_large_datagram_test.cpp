// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Datagrams of several packets between queue pairs that take them (docs/design/0031); with all
// others they are what they are on hardware.
#include "verbs/limits.h"
#include "verbs/wire_size.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

namespace ib::conformance {
namespace {

constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::uint32_t kMtu = 4096;
constexpr std::uint32_t kMost = verbs::limits::kMaxLargeDatagram;

class LargeDatagram : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    qa = new_large(*a);
    qb = new_large(*b);
    address = a->new_address(a->path_to(*b));
    ma = a->region(2 * kMost);
    mb = b->region(2 * kMost);
    ma.fill(1);
    mb.fill(2);
  }
  static Qp ready(Side& side, std::uint32_t flags, std::uint32_t srq = kNoHandle) {
    QpSpec spec{QpType::Ud};
    spec.flags = flags;
    spec.srq = srq;
    const Qp qp = side.new_qp(spec);
    to_init(qp, QpType::Ud, {});
    control::QpAttr attr;
    attr.state = QpState::Rtr;
    EXPECT_EQ(qp.try_modify(qp_attr::kState, attr), Status::Ok) << side.reason();
    to_rts(qp, QpType::Ud, {});
    return qp;
  }
  static Qp new_large(Side& side) { return ready(side, control::qp_flag::kTakesLarge); }
  static Qp new_plain(Side& side) { return ready(side, 0); }

  Work to(const Qp& qp, std::uint64_t wr_id, std::uint32_t bytes) const {
    Work work = send_work(wr_id, {ma.sge(3, bytes)});
    work.address = address;
    work.remote_qpn = qp.qpn;
    work.remote_qkey = kQkey;
    return work;
  }
  bool may_send_large(const Qp& from, std::uint32_t qpn) const {
    return a->expect(Command::MaySendLarge, Message().put(from.handle).put(address).put(qpn))
        .out.take<bool>();
  }
  // As of a queue pair without the flag: the sender is at fault.
  void expect_too_long(const Qp& from, const Work& work) const {
    from.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::LocLenErr).vendor_err,
              static_cast<std::uint32_t>(Cause::LocalLength));
    EXPECT_EQ(from.state(), QpState::Sqe);
    EXPECT_TRUE(b->cq().stays_empty());
    EXPECT_EQ(mb.mismatches(2, 0, mb.length), 0u);
    from.to(QpState::Rts);
  }
  void expect_lost(const Work& work) const {
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, work.wr_id);
    EXPECT_TRUE(b->cq().stays_empty());
    EXPECT_EQ(mb.mismatches(2, 0, mb.length), 0u);
  }

  std::uint32_t address = kNoHandle;
  Region ma;
  Region mb;
};
IB_EVERY_SETTING(LargeDatagram);

TEST_P(LargeDatagram, ComesWholeFortyBytesIntoTheReceive) {
  for (const std::uint32_t size : {kMtu, kMtu + 1, 2 * kMtu, 33'333u, 65'539u, kMost}) {
    mb.fill(2);
    qb.receive(1, {mb.sge(0, kGrh + size)});
    qa.send(to(qb, 2, size));
    EXPECT_EQ(a->cq().one(WcStatus::Success).opcode, WcOpcode::Send);
    const Completion received = b->cq().one(WcStatus::Success);
    EXPECT_EQ(received.byte_len, kGrh + size);
    EXPECT_EQ(received.src_qp, qa.qpn);
    EXPECT_EQ(mb.mismatches(1, kGrh, size, 3), 0u) << size;
    EXPECT_EQ(mb.mismatches(2, kGrh + size, 100, kGrh + size), 0u) << size;
  }
}

TEST_P(LargeDatagram, AnImmediateComesAlong) {
  qb.receive(1, {mb.all()});
  Work work = to(qb, 1, 50'000);
  work.opcode = WrOpcode::SendWithImm;
  work.imm = 0x0a0b0c0d;
  qa.send(work);
  const Completion received = b->cq().one(WcStatus::Success);
  EXPECT_EQ(received.flags & wc_flag::kWithImm, wc_flag::kWithImm);
  EXPECT_EQ(received.imm, 0x0a0b0c0du);
  EXPECT_EQ(mb.mismatches(1, kGrh, 50'000, 3), 0u);
}

// The header is that of the first packet: its length has 16 bits.
TEST_P(LargeDatagram, TheRouteHeaderIsThatOfItsFirstPacket) {
  verbs::AddressVector av = a->path_to(*b);
  av.is_global = 1;
  av.dgid = b->info().gid;
  Work work = to(qb, 1, 3 * kMtu);
  work.address = a->new_address(av);
  qb.receive(1, {mb.all()});
  qa.send(work);
  EXPECT_EQ(b->cq().one(WcStatus::Success).flags & wc_flag::kGrh, wc_flag::kGrh);
  const auto header = mb.bytes(0, kGrh);
  const int length =
      is_ethernet() ? header[22] * 256 + header[23] - 20 - 8 : header[4] * 256 + header[5];
  EXPECT_EQ(length, 12 + 8 + static_cast<int>(kMtu) + 4);
  EXPECT_EQ(mb.mismatches(1, kGrh, 3 * kMtu, 3), 0u);
}

TEST_P(LargeDatagram, ComesThroughASharedReceiveQueue) {
  const Srq srq = b->new_srq();
  const Qp shared = ready(*b, control::qp_flag::kTakesLarge, srq.handle);
  srq.receive(5, {mb.sge(0, 30'000), mb.sge(40'000, 30'000)});
  qa.send(to(shared, 1, 50'000));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u);
  EXPECT_EQ(mb.mismatches(1, kGrh, 30'000 - kGrh, 3), 0u);
  EXPECT_EQ(mb.mismatches(1, 40'000, 20'000 + kGrh, 3 + 30'000 - kGrh), 0u);
}

TEST_P(LargeDatagram, PlainQueuePairsSendAndGetNone) {
  const Qp plain_a = new_plain(*a);
  const Qp plain_b = new_plain(*b);
  qb.receive(1, {mb.all()});
  plain_b.receive(2, {mb.all()});
  expect_too_long(qa, to(plain_b, 1, kMtu + 1));
  expect_too_long(plain_a, to(qb, 2, kMtu + 1));
  expect_too_long(plain_a, to(plain_b, 3, kMtu + 1));
  // One packet goes each way.
  qa.send(to(plain_b, 4, kMtu));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 2u);
  plain_a.send(to(qb, 5, kMtu));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
}

TEST_P(LargeDatagram, HasALimit) {
  qb.receive(1, {mb.all()});
  expect_too_long(qa, to(qb, 1, kMost + 1));
}

TEST_P(LargeDatagram, AGroupGetsNone) {
  qb.receive(1, {mb.all()});
  verbs::AddressVector av = a->path_to(*b);
  av.is_global = 1;
  av.dgid = verbs::Gid{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
  if (is_ethernet()) av.dgid = verbs::ipv4_gid(0xe1000001u);
  if (!is_ethernet()) av.dlid = 0xc007;
  Work work = to(qb, 1, kMtu + 1);
  work.address = a->new_address(av);
  work.remote_qpn = kMulticastQpn;
  expect_too_long(qa, work);
}

TEST_P(LargeDatagram, WhatDoesNotFitIsLost) {
  qb.receive(5, {mb.sge(0, kGrh + 50'000 - 1)});
  expect_lost(to(qb, 1, 50'000));
  EXPECT_EQ(qb.state(), QpState::Rts);
  qa.send(to(qb, 2, 50'000 - 1));
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 5u) << "the receive is still there";
}

// Its sender cannot see in time that its peer goes, so it is not at fault.
TEST_P(LargeDatagram, ToAQueuePairThatHasGoneItIsLost) {
  const Qp gone = new_large(*b);
  EXPECT_TRUE(may_send_large(qa, gone.qpn));
  EXPECT_EQ(gone.try_destroy(), Status::Ok);
  EXPECT_FALSE(may_send_large(qa, gone.qpn));
  expect_lost(to(gone, 1, 50'000));
  EXPECT_EQ(qa.state(), QpState::Rts);
}

TEST_P(LargeDatagram, WalksThroughTheChecksOfADatagram) {
  qb.receive(5, {mb.all()});
  Work work = to(qb, 1, 50'000);
  work.remote_qkey = kQkey ^ 1;
  expect_lost(work);
  const Qp early = b->new_qp([] {
    QpSpec spec{QpType::Ud};
    spec.flags = control::qp_flag::kTakesLarge;
    return spec;
  }());
  to_init(early, QpType::Ud, {});
  early.receive(6, {mb.all()});
  expect_lost(to(early, 2, 50'000));
}

TEST_P(LargeDatagram, ASenderSeesBeforehandWhoTakesThem) {
  const Qp plain_a = new_plain(*a);
  const Qp plain_b = new_plain(*b);
  EXPECT_TRUE(may_send_large(qa, qb.qpn));
  EXPECT_FALSE(may_send_large(qa, plain_b.qpn));
  EXPECT_FALSE(may_send_large(plain_a, qb.qpn));
  for (const std::uint32_t qpn : {0u, 1u, kMulticastQpn, qb.qpn ^ 0x800000u}) {
    EXPECT_FALSE(may_send_large(qa, qpn)) << qpn;
  }
}

TEST_P(LargeDatagram, OnlyDatagramQueuePairsHaveTheFlag) {
  for (const QpType type : {QpType::Rc, QpType::Uc}) {
    QpSpec spec{type};
    spec.flags = control::qp_flag::kTakesLarge;
    Qp refused;
    EXPECT_EQ(a->try_qp(spec, refused), Status::InvalidParameter);
    EXPECT_NE(a->reason().find("only UD"), std::string::npos) << a->reason();
  }
}

// Packets and bytes of both ports, and of one that its receiver drops.
TEST_P(LargeDatagram, IsCountedInPackets) {
  const std::string socket = TestFabric::shared().socket();
  const std::string from = home();
  const std::string there = is_tree() ? away() : home();
  const auto read = [&](const std::string& node, const char* name) {
    return port_counter(socket, node, name);
  };
  constexpr std::uint32_t kBytes = 3 * kMtu + 5;
  const auto expect_counted = [&](const Work& work) {
    const std::uint64_t sent = read(from, "port_xmit_packets");
    const std::uint64_t words = read(from, "port_xmit_data");
    const std::uint64_t received = read(there, "port_rcv_packets");
    const std::uint64_t received_words = read(there, "port_rcv_data");
    qa.send(work);
    EXPECT_EQ(a->cq().one(WcStatus::Success).wr_id, work.wr_id);
    verbs::AddressVector av = a->path_to(*b);
    const std::uint64_t bytes =
        4 * verbs::wire::datagram_base(GetParam().link_layer, av) + kBytes + 3 + 4;
    EXPECT_EQ(read(from, "port_xmit_packets") - sent, 4u);
    EXPECT_EQ(read(there, "port_rcv_packets") - received, 4u);
    EXPECT_EQ((read(from, "port_xmit_data") - words), bytes / 4);
    EXPECT_EQ((read(there, "port_rcv_data") - received_words), bytes / 4);
  };
  Work work = to(qb, 1, kBytes);
  work.opcode = WrOpcode::SendWithImm;
  qb.receive(1, {mb.all()});
  expect_counted(work);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, kGrh + kBytes);
  work.remote_qkey = kQkey ^ 1;
  expect_counted(work);
}

}  // namespace
}  // namespace ib::conformance
