// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queue pairs 0 and 1, MAD queue pairs and physical regions, which only kernel clients have.
#include "al/mad_qp.h"
#include "kernel_client.h"
#include "mad/smp.h"

#include <array>
#include <bit>
#include <cstring>
#include <deque>

namespace ib::conformance {
namespace {

using MadBytes = std::array<std::byte, al::kMadBytes>;

MadBytes pattern(std::uint8_t seed) {
  MadBytes mad;
  for (std::size_t i = 0; i < mad.size(); ++i) mad[i] = std::byte(i * 5 + seed);
  return mad;
}

class KernelSpecialTest : public KernelClient {};
IB_INFINIBAND_SETTINGS(KernelSpecialTest);

// A MAD queue pair with the MADs that it has received and sent.
struct Mads {
  al::MadQp qp;
  std::deque<std::pair<al::MadAddress, MadBytes>> came;
  std::deque<std::pair<std::uint64_t, WcStatus>> sent;

  Mads() {
    qp.set_on_receive([this](const al::MadAddress& from, auto mad) {
      MadBytes copy;
      std::copy(mad.begin(), mad.end(), copy.begin());
      came.emplace_back(from, copy);
    });
    qp.set_on_sent(
        [this](std::uint64_t context, WcStatus status) { sent.emplace_back(context, status); });
  }
};

// A second client, on the other host.
class MadTest : public KernelSpecialTest {
 protected:
  void SetUp() override {
    KernelSpecialTest::SetUp();
    on_loop([this] {
      al2 = std::make_unique<al::Al>(daemon().access_layer(), driver);
      ca2 = std::make_unique<al::Ca>(*al2);
    });
    must([this](io::IrpRef irp) { al2->open(kWest, "kernel_client_2", std::move(irp)); });
    must([this](io::IrpRef irp) { ca2->open("\\Device\\ibal", std::move(irp)); });
    lid = lid_of(*ca);
    lid2 = lid_of(*ca2);
    ASSERT_NE(lid, lid2);
  }
  void TearDown() override {
    for (Mads* mads : {&east, &west}) {
      must([mads](io::IrpRef irp) { mads->qp.close(std::move(irp)); });
    }
    must([this](io::IrpRef irp) { ca2->close(std::move(irp)); });
    must([this](io::IrpRef irp) { al2->close(std::move(irp)); });
    on_loop([this] {
      ca2.reset();
      al2.reset();
    });
    KernelSpecialTest::TearDown();
  }
  Status open(Mads& mads, al::Ca& at, QpType type, std::uint32_t depth = 8,
              std::uint32_t report_every = 1) {
    return wait_for([&](io::IrpRef irp) {
      mads.qp.open(at, {type, 1, depth, report_every}, std::move(irp));
    });
  }
  void send(Mads& from, const al::MadAddress& to, const MadBytes& mad, std::uint64_t context = 0) {
    Status status = Status::Pending;
    on_loop([&] { status = from.qp.send(to, mad, context); });
    EXPECT_EQ(status, Status::Ok);
  }
  al::MadAddress to_west(std::uint32_t qpn = 1) const { return {lid2, 0, qpn, verbs::kGsiQkey, 0}; }
  bool sent_one(Mads& mads, std::uint64_t context) {
    const bool came = comes([&] { return !mads.sent.empty(); });
    if (!came) return false;
    const auto first = mads.sent.front();
    on_loop([&] { mads.sent.pop_front(); });
    return first.first == context && first.second == WcStatus::Success;
  }

  std::unique_ptr<al::Al> al2;
  std::unique_ptr<al::Ca> ca2;
  std::uint16_t lid2 = 0;
  Mads east;
  Mads west;
};
IB_INFINIBAND_SETTINGS(MadTest);

TEST_P(MadTest, GeneralMadsGoToWhoHasQueuePairOneAndBack) {
  ASSERT_EQ(open(east, *ca, QpType::Gsi), Status::Ok) << reason;
  ASSERT_EQ(open(west, *ca2, QpType::Gsi), Status::Ok) << reason;
  send(east, to_west(), pattern(1), 77);
  EXPECT_TRUE(sent_one(east, 77));
  ASSERT_TRUE(comes([&] { return west.came.size() == 1; }));
  EXPECT_EQ(west.came[0].first.lid, lid);
  EXPECT_EQ(west.came[0].first.qpn, 1u);
  EXPECT_EQ(west.came[0].second, pattern(1));
  send(west, {lid, 0, 1, verbs::kGsiQkey, 0}, pattern(2));
  ASSERT_TRUE(comes([&] { return east.came.size() == 1; }));
  EXPECT_EQ(east.came[0].second, pattern(2));
}

TEST_P(MadTest, AMadQueuePairOfOnesOwnIsAnsweredByItsNumber) {
  ASSERT_EQ(open(east, *ca, QpType::Ud), Status::Ok) << reason;
  ASSERT_EQ(open(west, *ca2, QpType::Gsi), Status::Ok) << reason;
  send(east, to_west(), pattern(3));
  ASSERT_TRUE(comes([&] { return west.came.size() == 1; }));
  EXPECT_EQ(west.came[0].first.qpn, east.qp.qpn());
  al::MadAddress back = west.came[0].first;
  back.qkey = verbs::kGsiQkey;
  send(west, back, pattern(4));
  ASSERT_TRUE(comes([&] { return east.came.size() == 1; }));
  EXPECT_EQ(east.came[0].first.qpn, 1u);
  EXPECT_EQ(east.came[0].second, pattern(4));
}

// An HCA has its SMA in hardware. Here the owner of queue pair 0 queries the port's agents and
// sends the answer.
TEST_P(MadTest, AGetByQueuePairZeroIsAnsweredWithTheHelpOfTheAgents) {
  ASSERT_EQ(open(east, *ca, QpType::Smi), Status::Ok) << reason;
  ASSERT_EQ(open(west, *ca2, QpType::Smi), Status::Ok) << reason;
  control::MadIn in;
  control::MadOut out;
  io::Irp asked;
  on_loop([&] {
    west.qp.set_on_receive([&](const al::MadAddress& from, auto mad) {
      in.port = 1;
      std::memcpy(in.mad.data(), mad.data(), mad.size());
      ca2->local_mad(in, out, asked.start([](io::Irp&, void*) {}, nullptr));
      EXPECT_EQ(asked.status, Status::Ok) << asked.reason;
      MadBytes answer;
      std::memcpy(answer.data(), out.mad.data(), answer.size());
      EXPECT_EQ(west.qp.send(from, answer), Status::Ok);
    });
  });
  mad::Smp smp;
  smp.header = {1,  mad::mgmt_class::kSubnLid,
                1,  mad::method::kGet,
                0,  0,
                42, mad::smp_attribute::kNodeInfo,
                0,  0};
  MadBytes get{};
  std::memcpy(get.data(), &smp, sizeof smp);
  send(east, to_west(0), get);
  ASSERT_TRUE(comes([&] { return east.came.size() == 1; }));
  EXPECT_EQ(east.came[0].first.qpn, 0u);
  std::memcpy(&smp, east.came[0].second.data(), sizeof smp);
  EXPECT_EQ(smp.header.method, mad::method::kGetResp);
  EXPECT_EQ(smp.header.transaction_id, 42u);
  mad::NodeInfo info;
  std::memcpy(&info, smp.data.data(), sizeof info);
  EXPECT_EQ(info.node_guid, ca2->info().ca.node_guid);
}

TEST_P(MadTest, AQueuePairOfAPortHasOneOwner) {
  ASSERT_EQ(open(east, *ca, QpType::Gsi), Status::Ok) << reason;
  Mads second;
  EXPECT_EQ(open(second, *ca, QpType::Gsi), Status::AlreadyExists);
  EXPECT_NE(reason.find("kernel_client"), std::string::npos) << reason;
  EXPECT_FALSE(second.qp.is_open());
  ASSERT_EQ(open(west, *ca, QpType::Smi), Status::Ok) << "the other one is free: " << reason;
  must([&](io::IrpRef irp) { east.qp.close(std::move(irp)); });
  EXPECT_EQ(open(second, *ca, QpType::Gsi), Status::Ok) << reason;
  must([&](io::IrpRef irp) { second.qp.close(std::move(irp)); });
}

TEST_P(MadTest, WhatCameBeforeAndAfterAnOwnerIsLost) {
  ASSERT_EQ(open(east, *ca, QpType::Gsi), Status::Ok) << reason;
  send(east, to_west(), pattern(1), 1);
  EXPECT_TRUE(sent_one(east, 1)) << "the sender never hears of it";
  ASSERT_EQ(open(west, *ca2, QpType::Gsi), Status::Ok) << reason;
  send(east, to_west(), pattern(2), 2);
  ASSERT_TRUE(comes([&] { return west.came.size() == 1; }));
  EXPECT_EQ(west.came[0].second, pattern(2));
  EXPECT_TRUE(sent_one(east, 2));
  must([&](io::IrpRef irp) { west.qp.close(std::move(irp)); });
  send(east, to_west(), pattern(3), 3);
  EXPECT_TRUE(sent_one(east, 3));
  EXPECT_EQ(west.came.size(), 1u);
}

TEST_P(MadTest, ProgramsReachItOnlyByAQueuePairThatHasItsKey) {
  ASSERT_EQ(open(west, *ca2, QpType::Gsi), Status::Ok) << reason;
  QpSpec spec;
  spec.type = QpType::Ud;
  qb = b->new_qp(spec);
  Connection with;
  with.qkey = 0x11111111;
  to_init(qb, QpType::Ud, with);
  to_rtr(qb, QpType::Ud, qb, with);
  to_rts(qb, QpType::Ud, with);
  const Region mb = b->region(4096);
  Work mad = send_work(1, {mb.sge(0, 256)});
  verbs::AddressVector av = b->path_to(*b);
  av.dlid = lid2;
  mad.address = b->new_address(av);
  mad.remote_qpn = 1;
  for (const std::uint32_t qkey : {with.qkey, verbs::kGsiQkey}) {
    mad.remote_qkey = qkey;
    qb.send(mad);
    b->cq().one(WcStatus::Success);
  }
  EXPECT_TRUE(west.came.empty());
  // A MAD in the other direction needs that of the queue pair.
  qb.receive(9, {mb.all()});
  send(west, {lid, 0, qb.qpn, with.qkey, 0}, pattern(8));
  const Completion got = b->cq().one(WcStatus::Success);
  EXPECT_EQ(got.byte_len, 296u);
  EXPECT_EQ(got.src_qp, 1u);
  // With the key of queue pairs 1 it is one of those that exchange MADs with them.
  control::QpAttr attr;
  attr.qkey = verbs::kGsiQkey;
  attr.state = QpState::Rts;
  ASSERT_EQ(qb.try_modify(qp_attr::kState | qp_attr::kQkey, attr), Status::Ok);
  qb.send(mad);
  b->cq().one(WcStatus::Success);
  EXPECT_TRUE(comes([&] { return west.came.size() == 1; }));
}

TEST_P(MadTest, ProgramsCannotHaveIt) {
  for (const QpType type : {QpType::Smi, QpType::Gsi}) {
    QpSpec spec;
    spec.type = type;
    spec.pd = b->pd();
    spec.send_cq = b->cq().handle;
    spec.recv_cq = b->cq().handle;
    Qp out;
    EXPECT_EQ(b->try_qp(spec, out), Status::AccessDenied);
    EXPECT_NE(b->reason().find("kernel clients"), std::string::npos) << b->reason();
  }
}

TEST_P(MadTest, NoMoreAreOnTheirWayThanItsDepth) {
  ASSERT_EQ(open(east, *ca, QpType::Gsi, 2), Status::Ok) << reason;
  ASSERT_EQ(open(west, *ca2, QpType::Gsi, 2), Status::Ok) << reason;
  // Its completions are polled between turns of the loop, so these three come in one turn.
  std::array<Status, 3> posted{};
  on_loop([&] {
    for (Status& status : posted) status = east.qp.send(to_west(), pattern(1));
  });
  EXPECT_EQ(posted[0], Status::Ok);
  EXPECT_EQ(posted[1], Status::Ok);
  EXPECT_EQ(posted[2], Status::LimitExceeded);
  ASSERT_TRUE(comes([&] { return west.came.size() == 2; }));
  for (int round = 0; round < 20; ++round) {
    const auto before = west.came.size();
    ASSERT_TRUE(comes([&] { return east.sent.size() >= before; }));
    send(east, to_west(), pattern(static_cast<std::uint8_t>(round)));
    ASSERT_TRUE(comes([&] { return west.came.size() == before + 1; }));
  }
  EXPECT_EQ(west.came.back().second, pattern(19));
}

TEST_P(MadTest, WhatIsSentMayBeReportedInGroups) {
  ASSERT_EQ(open(east, *ca, QpType::Gsi, 6, 4), Status::Ok) << reason;
  ASSERT_EQ(open(west, *ca2, QpType::Gsi), Status::Ok) << reason;
  for (std::uint64_t i = 0; i < 40; ++i) {
    send(east, to_west(), pattern(static_cast<std::uint8_t>(i)), i);
    ASSERT_TRUE(comes([&] { return west.came.size() == i + 1; })) << i;
    EXPECT_EQ(west.came.back().second, pattern(static_cast<std::uint8_t>(i)));
    const std::size_t reported = (i + 1) / 4 * 4;
    ASSERT_TRUE(comes([&] { return east.sent.size() == reported; })) << i;
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(east.sent[i], std::pair(i, WcStatus::Success));
  }
}

TEST_P(MadTest, WrongOptionsAreRefused) {
  EXPECT_EQ(open(east, *ca, QpType::Rc), Status::InvalidParameter);
  EXPECT_EQ(open(east, *ca, QpType::Gsi, 0), Status::InvalidParameter);
  EXPECT_EQ(open(east, *ca, QpType::Gsi, 8, 0), Status::InvalidParameter);
  EXPECT_EQ(open(east, *ca, QpType::Gsi, 8, 9), Status::InvalidParameter);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) {
              east.qp.open(*ca, {QpType::Gsi, 9, 8}, std::move(irp));
            }),
            Status::InvalidParameter);
  EXPECT_NE(reason.find("ports 1 to"), std::string::npos) << reason;
  ASSERT_EQ(open(east, *ca, QpType::Gsi), Status::Ok) << reason;
  EXPECT_EQ(open(east, *ca, QpType::Gsi), Status::InvalidState);
  // A cancelled create leaves no queue pair behind.
  Mads cancelled;
  EXPECT_EQ(wait_for([&](io::IrpRef irp) {
              irp->cancel();
              cancelled.qp.open(*ca, {QpType::Ud, 1, 8}, std::move(irp));
            }),
            Status::Cancelled);
  EXPECT_FALSE(cancelled.qp.is_open());
}

// --- Physical regions ---

constexpr std::uint32_t kAll = access::kLocalWrite | access::kRemoteAny | access::kMwBind;
constexpr std::uint64_t kIova = 0x7000'0000;

TEST_P(KernelSpecialTest, RangesOfDeviceMemoryAreOneRegionForAProgram) {
  connect_to_b(QpType::Rc);
  const std::array<control::PhysicalRange, 3> ranges{{{4096, 24}, {0, 1000}, {6000, 2000}}};
  al::Region region2;
  must([&](io::IrpRef irp) {
    al::reg_physical(pd, ranges, &memory, kIova, kAll, region2, std::move(irp));
  });
  EXPECT_EQ(region2.made.length, 3024u);
  const Region mb = b->region(4096);
  mb.fill(5);
  Work write = rdma(WrOpcode::RdmaWrite, 1, {mb.sge(0, 3024)}, region2.made.rkey, kIova);
  qb.send(write);
  b->cq().one(WcStatus::Success);
  const auto sent = mb.bytes(0, 3024);
  on_loop([&] {
    EXPECT_EQ(std::memcmp(memory.bytes + 4096, sent.data(), 24), 0);
    EXPECT_EQ(std::memcmp(memory.bytes, sent.data() + 24, 1000), 0);
    EXPECT_EQ(std::memcmp(memory.bytes + 6000, sent.data() + 1024, 2000), 0);
  });
  // The kernel client sends from the region and receives into it.
  qb.receive(2, {mb.sge(0, 3024)});
  mb.fill(6);
  const Sge all{kIova, 3024, region2.made.lkey};
  EXPECT_EQ(post(WrOpcode::Send, 3, all), Status::Ok);
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  b->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.bytes(0, 3024), sent);
  EXPECT_EQ(receive(4, {kIova + 8, 2000, region2.made.lkey}), Status::Ok);
  mb.fill(7);
  qb.send(send_work(5, {mb.sge(0, 2000)}));
  b->cq().one(WcStatus::Success);
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  const auto second = mb.bytes(0, 2000);
  on_loop([&] {
    EXPECT_EQ(std::memcmp(memory.bytes + 4104, second.data(), 16), 0);
    EXPECT_EQ(std::memcmp(memory.bytes, second.data() + 16, 1000), 0);
    EXPECT_EQ(std::memcmp(memory.bytes + 6000, second.data() + 1016, 984), 0);
  });
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(memory, std::move(irp)); }),
            Status::DeviceBusy);
  gone(region2);
  end();
}

TEST_P(KernelSpecialTest, AtomicsAndWindowsWorkInTheLaterRanges) {
  connect_to_b(QpType::Rc);
  const std::array<control::PhysicalRange, 2> ranges{{{4096, 64}, {0, 64}}};
  al::Region region2;
  must([&](io::IrpRef irp) {
    al::reg_physical(pd, ranges, &memory, kIova, kAll, region2, std::move(irp));
  });
  const Region mb = b->region(64);
  on_loop([&] {
    const std::uint64_t seven = 7;
    std::memcpy(memory.bytes + 8, &seven, sizeof seven);
  });
  Work add = rdma(WrOpcode::AtomicFetchAdd, 1, {mb.sge(0, 8)}, region2.made.rkey, kIova + 72);
  add.compare_add = 5;
  qb.send(add);
  b->cq().one(WcStatus::Success);
  EXPECT_EQ(mb.word(0), 7u);
  on_loop([&] {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.bytes + 8, sizeof word);
    EXPECT_EQ(word, 12u);
  });
  // A window over the place where two ranges meet.
  al::Window window;
  must([&](io::IrpRef irp) { al::alloc_mw(pd, 1, window, std::move(irp)); });
  const al::Bind bind{9, &region2, kIova + 56, 16, access::kRemoteWrite};
  on_loop([&] { EXPECT_EQ(al::bind(kq, window, bind), Status::Ok); });
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(region2, std::move(irp)); }),
            Status::DeviceBusy);
  mb.fill(3);
  Work write = rdma(WrOpcode::RdmaWrite, 3, {mb.sge(0, 16)}, window.rkey, kIova + 56);
  qb.send(write);
  b->cq().one(WcStatus::Success);
  const auto written = mb.bytes(0, 16);
  on_loop([&] {
    EXPECT_EQ(std::memcmp(memory.bytes + 4152, written.data(), 8), 0);
    EXPECT_EQ(std::memcmp(memory.bytes, written.data() + 8, 8), 0);
  });
  gone(window);
  gone(region2);
  end();
}

TEST_P(KernelSpecialTest, AnFmrMayCoverScatteredMemory) {
  connect_to_b(QpType::Rc);
  std::vector<std::uint64_t> words(1024);
  const auto at = [&](std::size_t word) { return std::bit_cast<std::uint64_t>(&words[word]); };
  al::Fmr fmr;
  must([&](io::IrpRef irp) { al::alloc_fmr(pd, 4096, kAll, fmr, std::move(irp)); });
  const Region mb = b->region(4096);
  for (const std::size_t shift : {0u, 100u}) {
    const std::array<control::PhysicalRange, 2> ranges{{{at(500 + shift), 800}, {at(shift), 80}}};
    must([&](io::IrpRef irp) { al::map_fmr(fmr, ranges, kIova, std::move(irp)); });
    mb.fill(shift);
    Work write = rdma(WrOpcode::RdmaWrite, 1, {mb.sge(0, 880)}, fmr.made.rkey, kIova);
    qb.send(write);
    b->cq().one(WcStatus::Success);
    const auto sent = mb.bytes(0, 880);
    EXPECT_EQ(std::memcmp(&words[500 + shift], sent.data(), 800), 0);
    EXPECT_EQ(std::memcmp(&words[shift], sent.data() + 800, 80), 0);
    const Sge sge{kIova + 792, 16, fmr.made.lkey};
    EXPECT_EQ(post(WrOpcode::RdmaWrite, 4, sge, mb.at(2000), mb.rkey), Status::Ok);
    EXPECT_EQ(one(cq).status, WcStatus::Success);
    EXPECT_EQ(mb.bytes(2000, 16), mb.bytes(792, 16));
  }
  // Mapped to one range again, then unmapped.
  must([&](io::IrpRef irp) { al::map_fmr(fmr, words.data(), 4096, std::move(irp)); });
  Work write = rdma(WrOpcode::RdmaWrite, 2, {mb.sge(0, 4096)}, fmr.made.rkey, at(0));
  qb.send(write);
  b->cq().one(WcStatus::Success);
  must([&](io::IrpRef irp) { al::unmap_fmr(fmr, std::move(irp)); });
  qb.send(write);
  b->cq().one(WcStatus::RemAccessErr);
  gone(fmr);
  end();
}

TEST_P(KernelSpecialTest, RangesThatCannotBeAreRefused) {
  make(QpType::Rc);
  al::Region bad;
  const auto tried = [&](std::vector<control::PhysicalRange> ranges, al::DeviceMemory* in,
                         std::uint64_t iova = kIova) {
    return wait_for(
        [&](io::IrpRef irp) { al::reg_physical(pd, ranges, in, iova, kAll, bad, std::move(irp)); });
  };
  EXPECT_EQ(tried({}, &memory), Status::InvalidParameter);
  EXPECT_EQ(tried({{0, 8193}}, &memory), Status::InvalidParameter);
  EXPECT_NE(reason.find("has 8192"), std::string::npos) << reason;
  EXPECT_EQ(tried({{0, 64}, {8192, 1}}, &memory), Status::InvalidParameter);
  EXPECT_NE(reason.find("range 1"), std::string::npos) << reason;
  EXPECT_EQ(tried({{0, 0}}, &memory), Status::InvalidParameter);
  EXPECT_EQ(tried({{0, 60}, {64, 8}}, &memory), Status::InvalidParameter) << "meet at no word";
  EXPECT_EQ(tried({{4, 8}}, &memory), Status::InvalidParameter) << "iova and address differ";
  EXPECT_EQ(tried({{4, 8}}, &memory, kIova + 4), Status::Ok) << reason;
  gone(bad);
  EXPECT_EQ(tried({{~0ull - 7, 16}}, nullptr), Status::InvalidParameter);
  EXPECT_EQ(tried(std::vector<control::PhysicalRange>(257, {0, 8}), &memory),
            Status::InvalidParameter);
  EXPECT_NE(reason.find("at most 256"), std::string::npos) << reason;
  EXPECT_EQ(tried(std::vector<control::PhysicalRange>(256, {0, 8}), &memory), Status::Ok) << reason;
  gone(bad);
  end();
}

}  // namespace
}  // namespace ib::conformance
