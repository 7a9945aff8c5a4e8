// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of Ethernet ports [IBA1 annexes A16, A17], and places where both link layers meet.
#include "base/buffers.h"
#include "fabric/addresses.h"
#include "linux/client/client_channel.h"
#include "verbs/gid.h"
#include "verbs/qp_state.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ib::conformance {
namespace {

namespace qp_attr = verbs::qp_attr;
constexpr std::uint32_t kQkey = 0x11111111;  // of Connection
constexpr std::size_t kGrh = verbs::kGrhBytes;

class Ethernet : public VerbsTest {
 protected:
  verbs::Gid gid(Side& side, std::uint32_t index) {
    Reply reply = side.expect(Command::QueryGid, Message().put(1u).put(index));
    return reply.out.take<verbs::Gid>();
  }
  verbs::AddressVector to(const verbs::Gid& destination, std::uint8_t index) {
    verbs::AddressVector av;
    av.port = 1;
    av.is_global = 1;
    av.dgid = destination;
    av.sgid_index = index;
    return av;
  }
  Status new_address(const verbs::AddressVector& av) {
    return a->call(Command::CreateAddress, Message().put(a->pd()).put(av)).status;
  }
  Qp datagrams(Side& side) {
    const Qp qp = side.new_qp({QpType::Ud});
    to_init(qp, QpType::Ud);
    control::QpAttr attr;
    attr.state = QpState::Rtr;
    EXPECT_EQ(qp.try_modify(qp_attr::kState, attr), Status::Ok) << side.reason();
    to_rts(qp, QpType::Ud);
    return qp;
  }
};
INSTANTIATE_TEST_SUITE_P(Verbs, Ethernet,
                         ::testing::Values(Setting{"adopted", Where::OtherProcess,
                                                   verbs::LinkLayer::Ethernet}),
                         setting_name);

TEST_P(Ethernet, ThePortSaysWhatItIs) {
  const control::PortAttr& port = a->info().port;
  EXPECT_EQ(port.link_layer, verbs::LinkLayer::Ethernet);
  EXPECT_EQ(port.flags, control::port_flag::kGrhRequired);
  EXPECT_EQ(port.lid, 0);
  EXPECT_EQ(port.sm_lid, 0);
  EXPECT_EQ(port.pkey_tbl_len, 1u);
  EXPECT_EQ(port.subnet_timeout, 0);
  const std::string address = verbs::address_text(gid(*a, 1));
  EXPECT_TRUE(address.starts_with("127.") && address.ends_with(".3")) << address;
  EXPECT_TRUE(verbs::is_zero(gid(*a, 2)));
}

TEST_P(Ethernet, AnAddressNeedsARouteAndAGidThatIsThere) {
  EXPECT_EQ(new_address(a->path_to(*b)), Status::Ok);
  verbs::AddressVector av = a->path_to(*b);
  av.is_global = 0;
  av.dlid = 1;
  EXPECT_EQ(new_address(av), Status::InvalidParameter);
  EXPECT_NE(a->reason().find("needs a global address"), std::string::npos) << a->reason();
  av = a->path_to(*b);
  av.sgid_index = 2;
  EXPECT_EQ(new_address(av), Status::InvalidParameter);
  EXPECT_NE(a->reason().find("sgid_index 2"), std::string::npos) << a->reason();
  qa = a->new_qp();
  qb = b->new_qp();
  to_init(qa, QpType::Rc);
  control::QpAttr attr = rtr_attributes(qa, qb);
  attr.av.is_global = 0;
  EXPECT_EQ(qa.try_modify(required(QpType::Rc, QpState::Init, QpState::Rtr), attr),
            Status::InvalidParameter);
  EXPECT_NE(a->reason().find("needs a global address"), std::string::npos) << a->reason();
}

TEST_P(Ethernet, ConnectsByEachAddressOfAPort) {
  for (const std::uint8_t index : {std::uint8_t{0}, kIpGid}) {
    qa = a->new_qp();
    qb = b->new_qp();
    for (const auto& [own, peer] : {std::pair{&qa, &qb}, {&qb, &qa}}) {
      to_init(*own, QpType::Rc);
      control::QpAttr attr = rtr_attributes(*own, *peer);
      attr.av = to(gid(*peer->side, index), index);
      EXPECT_EQ(own->try_modify(required(QpType::Rc, QpState::Init, QpState::Rtr), attr),
                Status::Ok)
          << own->side->reason();
      to_rts(*own, QpType::Rc);
    }
    const Region ma = a->region(4096);
    const Region mb = b->region(4096);
    ma.fill(1);
    qa.send(rdma(WrOpcode::RdmaWrite, 1, {ma.sge(0, 1000)}, mb));
    const Completion sent = a->cq().one(WcStatus::Success);
    EXPECT_EQ(sent.wr_id, 1u);
    EXPECT_EQ(mb.mismatches(1, 0, 1000), 0u) << unsigned{index};
  }
}

TEST_P(Ethernet, TheOtherNodeIsReachedAndTheOtherLinkLayerIsNot) {
  const auto south = new_side("south", Where::OtherProcess, kSouth);
  const auto east = new_side("east", Where::OtherProcess, kEast);
  ASSERT_NE(south, nullptr);
  ASSERT_NE(east, nullptr);
  EXPECT_EQ(new_address(a->path_to(*south)), Status::Ok) << a->reason();
  EXPECT_EQ(new_address(to(east->info().gid, 1)), Status::InvalidParameter);
  EXPECT_NE(a->reason().find("is of an InfiniBand port"), std::string::npos) << a->reason();
  const Reply refused =
      east->call(Command::CreateAddress, Message().put(east->pd()).put(to(a->info().gid, 0)));
  EXPECT_EQ(refused.status, Status::InvalidParameter);
  EXPECT_NE(east->reason().find("is of an Ethernet port"), std::string::npos) << east->reason();
  EXPECT_EQ(south->expect(Command::DestroyAll).status, Status::Ok);
  EXPECT_EQ(east->expect(Command::DestroyAll).status, Status::Ok);
}

// The same group number on the other link layer is another group.
TEST_P(Ethernet, AGroupEndsWithItsLinkLayer) {
  const auto east = new_side("east", Where::OtherProcess, kEast);
  ASSERT_NE(east, nullptr);
  const verbs::Gid group = verbs::make_gid(0xff12401b00000000, 1);
  const Qp sender = datagrams(*a);
  const Qp near = datagrams(*b);
  const Qp far = datagrams(*east);
  for (const Qp& member : {near, far}) {
    EXPECT_EQ(member.side
                  ->expect(Command::AttachGroup,
                           Message().put(member.handle).put(group).put(std::uint16_t{0}))
                  .status,
              Status::Ok);
  }
  const Region ma = a->region(4096);
  const Region mb = b->region(4096);
  const Region me = east->region(4096);
  ma.fill(1);
  near.receive(1, {mb.sge(0, 200)});
  far.receive(2, {me.sge(0, 200)});
  Work work = send_work(3, {ma.sge(0, 64)});
  work.address = a->new_address(to(group, 0));
  work.remote_qpn = 0xffffff;
  work.remote_qkey = kQkey;
  sender.send(work);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 1u);
  EXPECT_EQ(mb.mismatches(1, kGrh, 64), 0u);
  const auto header = mb.bytes(0, kGrh);
  EXPECT_EQ(header[0] >> 4, 6) << "IPv6, as the source GID";
  EXPECT_EQ(header[6], 17) << "UDP";
  EXPECT_TRUE(std::equal(group.begin(), group.end(), header.begin() + 24));
  EXPECT_TRUE(east->cq().stays_empty());
  for (const Qp& member : {near, far}) {
    EXPECT_EQ(member.side
                  ->expect(Command::DetachGroup,
                           Message().put(member.handle).put(group).put(std::uint16_t{0}))
                  .status,
              Status::Ok);
  }
  EXPECT_EQ(east->expect(Command::DestroyAll).status, Status::Ok);
}

TEST_P(Ethernet, APortHasTheDefaultPartitionOnly) {
  std::string reason;
  auto channel = os::connect_channel(TestFabric::shared().socket(), reason);
  ASSERT_TRUE(channel) << reason;
  control::ChangePartitionIn in;
  put_text(in.node, kNorth);
  put_text(in.ca, "softib0");
  in.port = 1;
  in.pkey = 0x8001;
  put_text(in.name, "ib1");
  const auto reply = (*channel)->call(static_cast<std::uint32_t>(control::Code::ChangePartition), 0,
                                      std::as_bytes(std::span(&in, 1)), {});
  EXPECT_EQ(reply.status, Status::NotSupported);
  EXPECT_NE(reply.reason.find("is an Ethernet port"), std::string::npos) << reply.reason;
}

}  // namespace
}  // namespace ib::conformance
