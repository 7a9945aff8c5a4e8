// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Multicast groups of an interface: memberships of the kernel, sending, events.
#include "ulp/ipoib/packets/membership_reports.h"
#include "ulp/ipoib/test/fake_host_test.h"

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

struct IpoibGroups : InterfaceBench {
  const GroupMapping mapping{2, Pkey{0xffff}};
  const Ipv4Address group{{239, 1, 2, 3}};
  const Gid mgid = mapping.of(group);

  void report(std::string_view kind, std::string_view address = "ef010203") {
    TestBytes packet = from_hex("46c0 0020 0000 4000 01 02 0000 0a000001 e0000016 94040000");
    const TestBytes body = from_hex(std::string(kind) + "000000" + std::string(address));
    packet.insert(packet.end(), body.begin(), body.end());
    transmit(frame_to({{0x01, 0, 0x5e, 0, 0, 0x16}}, kTypeIpv4, packet));
  }
  void send(std::size_t payload = 10) {
    TestBytes packet = make_packet({false, kUdp}, payload, false);
    std::memcpy(packet.data() + 16, group.bytes.data(), 4);
    transmit(frame_to(mac_of(group), kTypeIpv4, packet));
  }
  // Joins of the group, answered or not.
  std::vector<JoinRequest> joins_of(const Gid& wanted) {
    std::vector<JoinRequest> found;
    for (const auto& [id, request] : host.joins) {
      if (request.mgid == wanted) found.push_back(request);
    }
    return found;
  }
  std::vector<SentDatagram> sent_to(const Gid& wanted) {
    std::vector<SentDatagram> found;
    for (const SentDatagram& sent : host.datagrams) {
      if (sent.to.dgid == wanted) found.push_back(sent);
    }
    return found;
  }
};

TEST_F(IpoibGroups, TheFirstPacketJoinsForSendingAndWaits) {
  bring_up();
  send();
  send();
  ASSERT_EQ(host.joins.size(), 1u);
  EXPECT_EQ(host.joins[0].second.membership, Membership::SendOnly);
  EXPECT_FALSE(host.joins[0].second.create.has_value());
  answer_joins();
  ASSERT_EQ(host.datagrams.size(), 2u);
  EXPECT_EQ(host.datagrams[0].to.dlid, mlid_of(mgid));
  EXPECT_TRUE(host.datagrams[0].to.has_grh);
  EXPECT_EQ(host.datagrams[0].qpn, kMulticastQpn);
  EXPECT_FALSE(host.attached.contains(mgid));
}

TEST_F(IpoibGroups, AnUnusedSendOnlyGroupIsLeft) {
  bring_up();
  send();
  answer_joins();
  pass(6min);
  EXPECT_EQ(host.left, std::vector{mgid});
}

TEST_F(IpoibGroups, AReportJoinsAsMemberAndALeaveLeaves) {
  bring_up();
  report("16");
  ASSERT_EQ(joins_of(mgid).size(), 1u);
  EXPECT_EQ(joins_of(mgid)[0].membership, Membership::Full);
  EXPECT_TRUE(joins_of(mgid)[0].create.has_value());
  answer_joins();
  EXPECT_TRUE(host.attached.contains(mgid));
  pass(1h);
  EXPECT_TRUE(host.attached.contains(mgid));
  report("16");
  EXPECT_TRUE(joins_of(mgid).empty());
  report("17");
  EXPECT_FALSE(host.attached.contains(mgid));
  EXPECT_EQ(host.left.back(), mgid);
}

TEST_F(IpoibGroups, ASenderThatBecomesAMemberJoinsAgain) {
  bring_up();
  send();
  report("16");  // while the send-only join is under way
  answer_joins();
  pass(1ms);
  ASSERT_EQ(joins_of(mgid).size(), 1u);
  EXPECT_EQ(joins_of(mgid)[0].membership, Membership::Full);
  answer_joins();
  EXPECT_TRUE(host.attached.contains(mgid));
}

TEST_F(IpoibGroups, ALeaveWhileTheJoinIsUnderWayEndsIt) {
  bring_up();
  report("16");
  const RequestId id = host.joins.back().first;
  report("17");
  EXPECT_EQ(host.left.back(), mgid);
  interface->on_join_answer(id, link_parameters(), now);
  EXPECT_FALSE(host.attached.contains(mgid));
}

TEST_F(IpoibGroups, Ipv6GroupsThatShareAMgidAreLeftWithTheLast) {
  bring_up();
  const auto mld = [&](std::string_view type, std::string_view address) {
    TestBytes packet = from_hex(
        "60000000 0020 0001 fe800000000000000000000000000001"
        "ff020000000000000000000000000016 3a00050200000100");
    const TestBytes body = from_hex(std::string(type) + "00000000000000" + std::string(address));
    packet.insert(packet.end(), body.begin(), body.end());
    transmit(frame_to({{0x33, 0x33, 0, 0, 0, 0x16}}, kTypeIpv6, packet));
  };
  mld("83", "ff020000000000000000000000000101");
  mld("83", "ff050000000000000000000000000101");
  answer_joins();
  Ipv6Address shared;
  shared.bytes = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
  EXPECT_TRUE(host.attached.contains(mapping.of(shared)));
  mld("84", "ff020000000000000000000000000101");
  EXPECT_TRUE(host.attached.contains(mapping.of(shared)));
  mld("84", "ff050000000000000000000000000101");
  EXPECT_FALSE(host.attached.contains(mapping.of(shared)));
}

TEST_F(IpoibGroups, ARefusedSendOnlyJoinIsRetriedWithALaterPacket) {
  bring_up();
  send();
  interface->on_join_answer(host.joins.back().first, Status::NotFound, now);
  EXPECT_EQ(dropped(Drop::NoGroup), 1u);
  send();
  EXPECT_EQ(dropped(Drop::NoGroup), 2u);
  EXPECT_EQ(host.joins.size(), 1u);
  pass(1h);
  EXPECT_EQ(host.joins.size(), 1u);  // not without a packet
  send();
  EXPECT_EQ(host.joins.size(), 2u);
}

TEST_F(IpoibGroups, MembershipsAreKeptWhileThePortIsDown) {
  bring_up();
  report("16");
  answer_joins();
  PortState port = port_state();
  port.active = false;
  interface->on_port(port, now);
  EXPECT_TRUE(host.attached.empty());
  bring_up();
  EXPECT_TRUE(host.attached.contains(mgid));
}

TEST_F(IpoibGroups, AfterARestartOfTheSubnetManagerAllJoinAgainAtRandomMoments) {
  bring_up();
  report("16");
  answer_joins();
  interface->on_port_event(PortEvent::ClientReregister, now);
  EXPECT_TRUE(host.joins.empty());
  EXPECT_TRUE(host.link.carrier);
  pass(settings.times.rejoin_spread);
  EXPECT_EQ(host.joins.size(), 4u);
  // The broadcast group has another LID now.
  for (const auto& [id, request] : std::exchange(host.joins, {})) {
    GroupParameters parameters = link_parameters();
    parameters.mlid = Lid{0xc123};
    interface->on_join_answer(id, parameters, now);
  }
  for (const auto& [group_id, mlid] : host.attached) EXPECT_EQ(mlid, Lid{0xc123});
  EXPECT_EQ(host.attached.size(), 4u);
}

TEST_F(IpoibGroups, AnAnswerThatMayBeOfTheFormerManagerIsFollowedByAnotherJoin) {
  bring_up();
  report("16");
  interface->on_port_event(PortEvent::ClientReregister, now);
  ASSERT_EQ(joins_of(mgid).size(), 1u);
  answer_joins();
  EXPECT_TRUE(host.attached.contains(mgid));
  pass(settings.times.rejoin_spread);
  EXPECT_EQ(joins_of(mgid).size(), 1u);
}

TEST_F(IpoibGroups, SixHundredNodesDoNotJoinAtOnce) {
  std::map<std::int64_t, unsigned> joins;  // by 100 ms
  for (unsigned node = 0; node < 648; ++node) {
    settings.seed = node;
    host = FakeHost();
    interface.reset();
    now = Instant(1h);
    bring_up();
    interface->on_port_event(PortEvent::ClientReregister, now);
    for (unsigned step = 0; step < 50; ++step) {
      host.joins.clear();
      pass(100ms);
      joins[step] += static_cast<unsigned>(host.joins.size());
    }
  }
  unsigned all = 0;
  for (const auto& [step, count] : joins) {
    all += count;
    EXPECT_LT(count, 648u * 3 / 40 * 2) << step;
  }
  EXPECT_EQ(all, 648u * 3);
}

TEST_F(IpoibGroups, ASilentAdministratorEndsNoMembership) {
  bring_up();
  interface->on_port_event(PortEvent::ClientReregister, now);
  pass(2min);
  EXPECT_TRUE(host.link.carrier);
  EXPECT_EQ(host.attached.size(), 3u);
  answer_joins();
  // A refusal does.
  interface->on_port_event(PortEvent::ClientReregister, now);
  pass(settings.times.rejoin_spread);
  for (const auto& [id, request] : std::exchange(host.joins, {})) {
    interface->on_join_answer(id, Status::AccessDenied, now);
  }
  EXPECT_FALSE(host.link.carrier);
  EXPECT_TRUE(host.attached.empty());
}

TEST_F(IpoibGroups, LargePacketsToAGroupAreCutOrReported) {
  settings.connected_mode = true;
  bring_up();
  send(5000);  // says "don't fragment"
  answer_joins();
  EXPECT_EQ(host.datagrams.size(), 3u);
  TestBytes packet = make_packet({true, kUdp}, 5000, false);
  packet[24] = std::byte{0xff};
  transmit(frame_to({{0x33, 0x33, 0, 0, 0, 2}}, kTypeIpv6, packet));
  answer_joins();
  ASSERT_EQ(host.frames.size(), 1u);
  EXPECT_EQ(to_hex(ConstBytes(host.frames[0].bytes).subspan(54, 2)), "0200");
}

TEST_F(IpoibGroups, TheKernelIsQueriedForItsMembershipsWhenTheCarrierComes) {
  create();
  interface->on_port(port_state(), now);
  answer_joins();
  pass(1s);
  ASSERT_EQ(host.frames.size(), 2u);
  EXPECT_EQ(get<EthernetHeader>(host.frames[0].bytes).type, kTypeIpv4);
  EXPECT_EQ(get<EthernetHeader>(host.frames[1].bytes).type, kTypeIpv6);
  pass(1h);
  EXPECT_EQ(host.frames.size(), 4u);
}

TEST_F(IpoibGroups, TheTableHasABoundAndPrefersWhatIsUsed) {
  settings.limits.groups = 8;
  bring_up();
  const auto send_to = [&](std::uint8_t number) {
    TestBytes packet = make_packet({false, kUdp}, 10, false);
    packet[16] = std::byte{239};
    packet[19] = std::byte{number};
    transmit(frame_to({{0x01, 0, 0x5e, 0, 0, number}}, kTypeIpv4, packet));
  };
  for (std::uint8_t i = 0; i < 20; ++i) send_to(i);
  answer_joins();
  EXPECT_EQ(interface->snapshot(now).groups.size(), 8u);
  EXPECT_EQ(dropped(Drop::QueueFull), 15u);
  pass(10s);
  send_to(100);
  answer_joins();
  EXPECT_EQ(host.datagrams.size(), 6u);
  EXPECT_EQ(host.left.size(), 1u);
}

}  // namespace
}  // namespace ib::ipoib
