// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An interface and its unicast packets: carrier, neighbours, paths, sizes.
#include "ulp/ipoib/test/fake_host_test.h"

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;
using IpoibLink = InterfaceBench;
using IpoibUnicast = InterfaceBench;
using IpoibPaths = InterfaceBench;
using IpoibSizes = InterfaceBench;
using IpoibReceiving = InterfaceBench;

TEST_F(IpoibLink, TheCarrierFollowsTheBroadcastGroup) {
  create();
  interface->on_port(port_state(), now);
  EXPECT_FALSE(host.link.carrier);
  ASSERT_EQ(host.joins.size(), 1u);  // nothing else before it
  EXPECT_EQ(host.joins[0].second.mgid, GroupMapping(2, Pkey{0xffff}).broadcast());
  EXPECT_FALSE(host.joins[0].second.create.has_value());
  answer_joins();
  EXPECT_EQ(host.link, (LinkState{true, 2044}));
  pass(1s);
  EXPECT_EQ(host.joins.size(), 2u);  // all hosts, all nodes
  for (const auto& [id, request] : host.joins) {
    ASSERT_TRUE(request.create.has_value());
    EXPECT_EQ(request.create->qkey, Qkey{0x0b1b});
    EXPECT_EQ(request.create->mtu, 4);
  }
  answer_joins();
  EXPECT_EQ(host.attached.size(), 3u);
}

TEST_F(IpoibLink, AMissingBroadcastGroupIsCreated) {
  create();
  interface->on_port(port_state(), now);
  interface->on_join_answer(host.joins.back().first, Status::NotFound, now);
  pass(1s);
  ASSERT_EQ(host.joins.size(), 2u);
  ASSERT_TRUE(host.joins.back().second.create.has_value());
  EXPECT_EQ(host.joins.back().second.create->mtu, 4);   // 2048, whatever the port has
  EXPECT_EQ(host.joins.back().second.create->rate, 3);  // 10 Gb/s
  // Refused: the next attempt only joins again.
  interface->on_join_answer(host.joins.back().first, Status::AccessDenied, now);
  EXPECT_EQ(interface->snapshot(now).trouble, Trouble::BroadcastGroupMissing);
  EXPECT_EQ(interface->snapshot(now).status, Status::AccessDenied);
  pass(3s);
  ASSERT_EQ(host.joins.size(), 3u);
  EXPECT_FALSE(host.joins.back().second.create.has_value());
}

TEST_F(IpoibLink, AGroupThatWantsMoreThanThePortHasIsRefused) {
  create();
  PortState port = port_state();
  port.rate = 2;
  interface->on_port(port, now);
  interface->on_join_answer(host.joins.back().first, link_parameters(), now);
  EXPECT_FALSE(host.link.carrier);
  EXPECT_EQ(interface->snapshot(now).trouble, Trouble::BroadcastGroupUnfit);
}

TEST_F(IpoibLink, PortDownEndsTheCarrierAndPortUpBringsItBack) {
  bring_up();
  PortState port = port_state();
  port.active = false;
  interface->on_port(port, now);
  EXPECT_FALSE(host.link.carrier);
  EXPECT_TRUE(host.attached.empty());
  EXPECT_EQ(interface->snapshot(now).trouble, Trouble::PortDown);
  EXPECT_EQ(host.reports.back().trouble, Trouble::PortDown);
  bring_up();
  EXPECT_EQ(host.attached.size(), 3u);
  port.active = true;
  port.has_pkey = false;
  interface->on_port(port, now);
  EXPECT_EQ(interface->snapshot(now).trouble, Trouble::PkeyMissing);
}

TEST_F(IpoibLink, ConnectedModeHasTheLargeMtu) {
  settings.connected_mode = true;
  bring_up();
  EXPECT_EQ(host.link.mtu, 65'520u);
  EXPECT_EQ(interface->address().flags, kFlagRc);
}

TEST_F(IpoibLink, ASilentSubnetAdministratorIsAskedLessAndLess) {
  create();
  interface->on_port(port_state(), now);
  pass(10min);
  // Eight seconds of silence and up to sixteen of delay each.
  EXPECT_GT(host.joins.size(), 20u);
  EXPECT_LT(host.joins.size(), 60u);
  EXPECT_EQ(interface->snapshot(now).status, Status::Timeout);
}

TEST_F(IpoibLink, StopLeavesNothingBehind) {
  settings.connected_mode = true;
  bring_up();
  const MacAddress mac = introduce(peer(2, kFlagRc));
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 100, false)));
  answer_paths();
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 5000, false)));
  ASSERT_EQ(host.connects.size(), 1u);
  interface->stop(now);
  EXPECT_FALSE(host.link.carrier);
  EXPECT_TRUE(host.attached.empty());
  EXPECT_EQ(host.left.size(), 3u);
  EXPECT_EQ(host.disconnected, std::vector{host.connects[0].first});
  const Snapshot snapshot = interface->snapshot(now);
  EXPECT_TRUE(snapshot.paths.empty() && snapshot.connections.empty());
  interface->on_port(port_state(), now);
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 100, false)));
  EXPECT_EQ(dropped(Drop::FrameLinkDown), 1u);
  EXPECT_TRUE(host.joins.empty());
}

TEST_F(IpoibUnicast, APacketWaitsForThePathAndGoesOutAsItCame) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const TestBytes packet = make_packet({}, 100, false);
  transmit(frame_to(mac, kTypeIpv4, packet));
  EXPECT_TRUE(host.datagrams.empty());
  ASSERT_EQ(host.queries.size(), 1u);
  EXPECT_EQ(host.queries[0].second, test_gid(2));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 1u);
  const SentDatagram& sent = host.datagrams[0];
  EXPECT_EQ(sent.bytes, encapsulated({}, packet));
  EXPECT_EQ(sent.to.dlid, Lid{2});
  EXPECT_FALSE(sent.to.has_grh);
  EXPECT_EQ(sent.qpn, Qpn{0x102});
  EXPECT_EQ(sent.qkey, Qkey{0x0b1b});
}

TEST_F(IpoibUnicast, TheBytesOfAFrameAreSentWhereTheyLie) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 10, false)));
  answer_paths();
  TestBytes frame = frame_to(mac, kTypeIpv6, make_packet({true}, 1000, false));
  interface->on_frame({{}, frame}, now);
  EXPECT_EQ(host.last_message, frame.data() + 10);
}

TEST_F(IpoibUnicast, PaddingOfEthernetIsNotSent) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const TestBytes packet = make_packet({false, kUdp}, 1, false);
  TestBytes frame = frame_to(mac, kTypeIpv4, packet);
  frame.resize(60);
  transmit(frame);
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.datagrams[0].bytes, encapsulated({}, packet));
}

TEST_F(IpoibUnicast, ArpGoesBothWaysAndAProbeOfALostNeighbourIsBroadcast) {
  bring_up();
  const TestBytes request =
      from_hex("0001080006040001" + own_mac() + "0a0000010000000000000a000002");
  transmit(frame_to(kBroadcastMac, kTypeArp, request));
  ASSERT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.datagrams[0].qpn, kMulticastQpn);
  EXPECT_EQ(host.datagrams[0].to.dgid, GroupMapping(2, Pkey{0xffff}).broadcast());
  EXPECT_EQ(host.datagrams[0].bytes.size(), 60u);
  transmit(frame_to({{0x0a, 1, 2, 3, 4, 5}}, kTypeArp, request));
  ASSERT_EQ(host.datagrams.size(), 2u);
  EXPECT_EQ(host.datagrams[1].qpn, kMulticastQpn);
  transmit(frame_to(introduce(peer(2)), kTypeArp, request));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 3u);
  EXPECT_EQ(host.datagrams[2].qpn, Qpn{0x102});
}

TEST_F(IpoibUnicast, WhatCannotGoIsCountedByItsReason) {
  bring_up();
  transmit({});
  EXPECT_EQ(dropped(Drop::FrameMalformed), 1u);
  transmit(frame_to({{0x0a, 1, 2, 3, 4, 5}}, kTypeIpv4, make_packet({}, 100, false)));
  EXPECT_EQ(dropped(Drop::UnknownNeighbour), 1u);
  transmit(frame_to(kBroadcastMac, 0x8100, TestBytes(100)));
  EXPECT_EQ(dropped(Drop::FrameNotIp), 1u);
  transmit(frame_to(kBroadcastMac, kTypeIpv4, TestBytes(10)));
  EXPECT_EQ(dropped(Drop::FrameMalformed), 2u);
  const MacAddress mac = introduce(peer(2));
  for (unsigned i = 0; i < 40; ++i) transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false)));
  EXPECT_EQ(dropped(Drop::QueueFull), 8u);
  pass(6s);
  EXPECT_EQ(dropped(Drop::WaitExpired), 32u);
  EXPECT_EQ(all_dropped(), 44u);
}

TEST_F(IpoibPaths, ARefusalIsRetriedLaterAndReported) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const auto send = [&] { transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false))); };
  send();
  interface->on_path_answer(host.queries.back().first, Status::NotFound, now);
  EXPECT_EQ(dropped(Drop::NoPath), 1u);
  EXPECT_EQ(host.reports.back().trouble, Trouble::PathRefused);
  EXPECT_EQ(interface->snapshot(now).paths.at(0).status, Status::NotFound);
  send();
  EXPECT_EQ(host.queries.size(), 1u);
  EXPECT_EQ(dropped(Drop::NoPath), 2u);
  pass(2s);
  send();
  EXPECT_EQ(host.queries.size(), 2u);
  answer_paths();
  EXPECT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.reports.back().trouble, Trouble::None);
}

TEST_F(IpoibPaths, ARecordIsUsedUntilItsSuccessorComes) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const auto send = [&] { transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false))); };
  send();
  answer_paths();
  interface->on_port_event(PortEvent::SubnetManagerChanged, now);
  pass(5s);
  answer_joins();
  EXPECT_TRUE(host.queries.empty());  // nothing without traffic
  send();
  send();
  EXPECT_EQ(host.datagrams.size(), 3u);
  ASSERT_EQ(host.queries.size(), 1u);
  PathRecord path;
  path.dlid = Lid{77};
  interface->on_path_answer(host.queries[0].first, path, now);
  send();
  EXPECT_EQ(host.datagrams.back().to.dlid, Lid{77});
  // Silence does not take a record away.
  interface->on_port_event(PortEvent::PathsChanged, now);
  pass(5s);
  send();
  interface->on_path_answer(host.queries.back().first, Status::Timeout, now);
  send();
  EXPECT_EQ(host.datagrams.size(), 6u);
  // That the port is gone does.
  interface->on_path_changed(test_gid(2), now);
  send();
  EXPECT_EQ(host.datagrams.size(), 6u);
}

TEST_F(IpoibPaths, AnAnswerToAQuestionFromBeforeAChangeIsAskedForAgain) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const auto send = [&] { transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false))); };
  send();
  interface->on_port_event(PortEvent::PathsChanged, now);
  answer_paths();
  pass(settings.times.rejoin_spread);
  send();
  EXPECT_EQ(host.queries.size(), 1u);
  interface->on_path_changed(test_gid(2), now);
  answer_paths();
  send();
  EXPECT_EQ(host.datagrams.size(), 3u);
  EXPECT_EQ(host.queries.size(), 1u);
  answer_paths();
  send();
  EXPECT_TRUE(host.queries.empty());
}

TEST_F(IpoibPaths, RecordsExpireAndUnusedOnesGo) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false)));
  answer_paths();
  pass(11min);
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false)));
  EXPECT_EQ(host.queries.size(), 1u);
  answer_paths();
  pass(40min);
  const Snapshot snapshot = interface->snapshot(now);
  EXPECT_TRUE(snapshot.paths.empty());
  EXPECT_TRUE(snapshot.neighbours.empty());
}

TEST_F(IpoibPaths, ALateAnswerIsIgnored) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9, false)));
  const RequestId old = host.queries.back().first;
  pass(20s);
  interface->on_path_answer(old, PathRecord{Lid{9}}, now);
  EXPECT_EQ(interface->snapshot(now).paths.at(0).state, PathRow::State::Failed);
}

TEST_F(IpoibSizes, ALargeFrameIsSegmentedWithRightChecksums) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const Flow flow{true};
  transmit(frame_to(mac, kTypeIpv6, make_packet(flow, 10'000, true)), offload_of(flow, 1984));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 6u);
  for (const SentDatagram& sent : host.datagrams) {
    EXPECT_TRUE(sent.offload.is_nothing());
    EXPECT_TRUE(has_right_checksums(kTypeIpv6, ConstBytes(sent.bytes).subspan(4)));
  }
  EXPECT_EQ(interface->counters().segments, 6u);
}

TEST_F(IpoibSizes, APeerOfSoftibGetsItWhole) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  host.peers_take_large = true;
  const Flow flow;
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 60'000, true)), offload_of(flow, 2004));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.datagrams[0].offload, offload_of(flow, 2004));
  EXPECT_EQ(host.datagrams[0].bytes.size(), 60'044u);
  // Segments of what a connection would take are cut to the link's size.
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 60'000, true)), offload_of(flow, 60'000));
  EXPECT_EQ(host.datagrams.back().offload.segment_size, 2004);
  // Its kernel completes the checksums of small packets, too.
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 10, true)), offload_of(flow, 0));
  EXPECT_TRUE(host.datagrams.back().offload.needs_checksum);
}

TEST_F(IpoibSizes, APartialChecksumIsCompletedForOthers) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const Flow flow{false, kUdp};
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 10, true)), offload_of(flow, 0));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.datagrams[0].bytes, encapsulated(flow, make_packet(flow, 10, false)));
}

TEST_F(IpoibSizes, APacketThatIsTooBigIsFragmentedOrReported) {
  settings.connected_mode = true;
  bring_up();
  const MacAddress mac = introduce(peer(2));  // takes datagrams only
  const Flow flow{false, kUdp, 1, 2, 0};
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 5000, true)), offload_of(flow, 0));
  answer_paths();
  ASSERT_EQ(host.datagrams.size(), 3u);
  EXPECT_EQ(get<UdpHeader>(host.datagrams[0].bytes, 24).checksum,
            get<UdpHeader>(make_packet(flow, 5000, false), 20).checksum);
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 5000, false)));
  EXPECT_EQ(host.datagrams.size(), 3u);
  ASSERT_EQ(host.frames.size(), 1u);
  const auto ethernet = get<EthernetHeader>(host.frames[0].bytes);
  EXPECT_EQ(ethernet.destination, interface->mac().bytes);
  EXPECT_EQ(ethernet.source, mac.bytes);
  EXPECT_EQ(get<IcmpHeader>(host.frames[0].bytes, 34).rest, 2044u);
  EXPECT_EQ(dropped(Drop::TooBig), 1u);
  transmit(frame_to(mac, kTypeIpv6, make_packet({true}, 5000, false)));
  EXPECT_EQ(host.frames.size(), 2u);
}

TEST_F(IpoibSizes, AFullSendQueueDropsOncePerPacket) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 10, false)));
  answer_paths();
  host.send_queue_is_full = true;
  transmit(frame_to(mac, kTypeIpv4, make_packet({}, 9000, true)), offload_of({}, 1000));
  EXPECT_EQ(dropped(Drop::SendQueueFull), 1u);
}

TEST_F(IpoibReceiving, AMessageBecomesAFrameOfItsNeighbour) {
  bring_up();
  const MacAddress mac = introduce(peer(2));
  const TestBytes packet = make_packet({}, 100, false);
  receive(peer(2), encapsulated({}, packet));
  ASSERT_EQ(host.frames.size(), 1u);
  TestBytes expected;
  append(expected, EthernetHeader{interface->mac().bytes, mac.bytes, kTypeIpv4});
  expected.insert(expected.end(), packet.begin(), packet.end());
  EXPECT_EQ(host.frames[0].bytes, expected);
  EXPECT_EQ(host.frames[0].header.flags, 0);
}

TEST_F(IpoibReceiving, ASenderThatNobodyHasSeenGetsAMac) {
  bring_up();
  receive(peer(9), encapsulated({}, make_packet({}, 100, false)));
  ASSERT_EQ(host.frames.size(), 1u);
  const auto ethernet = get<EthernetHeader>(host.frames[0].bytes);
  EXPECT_NE(ethernet.source, kUnknownMac.bytes);
  transmit(frame_to(MacAddress{ethernet.source}, kTypeIpv4, make_packet({}, 9, false)));
  EXPECT_EQ(host.queries.at(0).second, test_gid(9));
  // Without a GRH it cannot be told.
  TestBytes buffer(40);
  const TestBytes message = encapsulated({}, make_packet({}, 10, false));
  buffer.insert(buffer.end(), message.begin(), message.end());
  interface->on_datagram({Qpn{5}, Lid{9}, false, {}, {}}, {Bytes(buffer).subspan(40), {}}, now);
  EXPECT_EQ(get<EthernetHeader>(host.frames.back().bytes).source, kUnknownMac.bytes);
}

TEST_F(IpoibReceiving, AGroupGivesTheDestination) {
  bring_up();
  const GroupMapping mapping(2, Pkey{0xffff});
  TestBytes packet = make_packet({false, kUdp}, 10, false);
  packet[16] = std::byte{239};
  receive(peer(2), encapsulated({}, packet), mapping.of(Ipv4Address{{239, 0, 0, 2}}));
  EXPECT_EQ(get<EthernetHeader>(host.frames.back().bytes).destination,
            (std::array<std::uint8_t, 6>{0x01, 0, 0x5e, 0, 0, 2}));
  receive(peer(2), encapsulated({}, make_packet({}, 10, false)), mapping.broadcast());
  EXPECT_EQ(get<EthernetHeader>(host.frames.back().bytes).destination, kBroadcastMac.bytes);
  receive(peer(2), encapsulated({}, packet), GroupMapping(2, Pkey{0x8001}).broadcast());
  EXPECT_EQ(dropped(Drop::MessageForeignGroup), 1u);
  receive({settings.qpn, test_gid(1), 0}, encapsulated({}, packet), mapping.broadcast());
  EXPECT_EQ(dropped(Drop::MessageOwn), 1u);
}

TEST_F(IpoibReceiving, LargeMessagesReachTheKernelWhole) {
  bring_up();
  const Flow flow;
  receive(peer(2), encapsulated(flow, make_packet(flow, 50'000, true)), {}, offload_of(flow, 2004));
  ASSERT_EQ(host.frames.size(), 1u);
  EXPECT_EQ(host.frames[0].header.gso_type, VirtioHeader::kGsoTcp4);
  EXPECT_EQ(host.frames[0].header.gso_size, 2004);
  EXPECT_EQ(host.frames[0].header.checksum_start, 34);
  Offload wrong = offload_of(flow, 2004);
  wrong.checksum_start = 60'000;
  receive(peer(2), encapsulated(flow, make_packet(flow, 50'000, true)), {}, wrong);
  EXPECT_EQ(dropped(Drop::MessageMalformed), 1u);
}

TEST_F(IpoibReceiving, WhatMakesNoSenseIsCounted) {
  bring_up();
  receive(peer(2), {});
  receive(peer(2), from_hex("080000"));
  receive(peer(2), from_hex("0800000045"));
  receive(peer(2), from_hex("08060000 0001"));
  EXPECT_EQ(dropped(Drop::MessageMalformed), 4u);
  receive(peer(2), from_hex("8100000045"));
  EXPECT_EQ(dropped(Drop::MessageNotIp), 1u);
  host.kernel_is_full = true;
  receive(peer(2), encapsulated({}, make_packet({}, 10, false)));
  EXPECT_EQ(dropped(Drop::KernelQueueFull), 1u);
}

}  // namespace
}  // namespace ib::ipoib
