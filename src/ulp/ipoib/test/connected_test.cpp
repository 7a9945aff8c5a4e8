// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connected mode: when connections are made, what goes on them, and how they end.
#include "ulp/ipoib/test/fake_host_test.h"

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

struct IpoibConnected : InterfaceBench {
  HardwareAddress other = peer(2, kFlagRc);
  MacAddress mac;

  void SetUp() override {
    settings.connected_mode = true;
    bring_up();
    mac = introduce(other);
    send(10);
    answer_paths();
    host.datagrams.clear();
  }
  void send(std::size_t payload, std::uint16_t fragment = kDontFragment) {
    transmit(frame_to(mac, kTypeIpv4, make_packet({false, kUdp, 1, 2, fragment}, payload, false)));
  }
  ConnectionId last() { return host.connects.back().first; }
  void connected(std::uint32_t bytes = kConnectionBufferBytes, std::uint32_t qpn = 0x102) {
    const ConnectionData data{qpn, bytes};
    interface->on_connected(last(), std::as_bytes(std::span(&data, 1)), now);
  }
  Result<AcceptedConnection> request(const Gid& gid, std::uint32_t qpn) {
    const ConnectionData data{qpn, kConnectionBufferBytes};
    return interface->on_connect_request({gid, std::as_bytes(std::span(&data, 1))}, now);
  }
  void receive_on(ConnectionId id) {
    TestBytes buffer(kHeadroom);
    const TestBytes message = encapsulated({}, make_packet({}, 100, false));
    buffer.insert(buffer.end(), message.begin(), message.end());
    interface->on_connection_message(id, {Bytes(buffer).subspan(kHeadroom), {}}, now);
  }
};

TEST_F(IpoibConnected, TheRequestNamesServiceAndSizes) {
  ASSERT_EQ(host.connects.size(), 1u);
  const ConnectRequest& made = host.connects[0].second;
  EXPECT_EQ(made.service_id, 0x1000'0000'0000'0102u);
  EXPECT_EQ(to_hex(std::as_bytes(std::span(&made.data, 1))), "000000480000fff4");
  EXPECT_EQ(made.path.dlid, Lid{2});
}

TEST_F(IpoibConnected, SmallPacketsGoByDatagramUntilTheConnectionIsThere) {
  send(100);
  EXPECT_EQ(host.datagrams.size(), 1u);
  send(30'000);
  EXPECT_EQ(host.datagrams.size(), 1u);
  EXPECT_TRUE(host.frames.empty());  // no error while it may still go
  connected();
  ASSERT_EQ(host.on_connections.size(), 1u);
  EXPECT_EQ(host.on_connections[0].bytes.size(), 30'032u);
  send(100);
  EXPECT_EQ(host.on_connections.size(), 2u);
  EXPECT_EQ(host.connects.size(), 1u);
}

TEST_F(IpoibConnected, ARefusedConnectionIsRetriedLaterAndDatagramsGoOn) {
  send(30'000, 0);
  interface->on_connection_lost(last(), Status::Disconnected, now);
  EXPECT_EQ(host.datagrams.size(), 15u);  // in fragments
  EXPECT_EQ(host.reports.back().trouble, Trouble::ConnectionRefused);
  send(100);
  EXPECT_EQ(host.connects.size(), 1u);
  pass(6s);
  send(100);
  EXPECT_EQ(host.connects.size(), 2u);
}

TEST_F(IpoibConnected, ATooBigPacketIsReportedAfterARefusal) {
  send(30'000);
  interface->on_connection_lost(last(), Status::Timeout, now);
  ASSERT_EQ(host.frames.size(), 1u);
  EXPECT_EQ(to_hex(ConstBytes(host.frames[0].bytes).subspan(34, 2)), "0304");
}

TEST_F(IpoibConnected, SilenceEndsTheAttempt) {
  pass(31s);
  EXPECT_EQ(host.disconnected, std::vector{last()});
  EXPECT_EQ(interface->snapshot(now).connections.at(0).state, ConnectionRow::State::Refused);
}

TEST_F(IpoibConnected, TheMtuIsThatOfTheNeighbour) {
  connected(9004);
  send(9000 - 28);
  EXPECT_EQ(host.on_connections.size(), 1u);
  send(9000 - 27);
  EXPECT_EQ(host.on_connections.size(), 1u);
  ASSERT_EQ(host.frames.size(), 1u);
  EXPECT_EQ(get<IcmpHeader>(host.frames[0].bytes, 34).rest, 9000u);
}

TEST_F(IpoibConnected, AnAnswerOfAnotherInterfaceIsNotTaken) {
  connected(kConnectionBufferBytes, 0x103);
  EXPECT_EQ(host.disconnected, std::vector{last()});
  send(100);
  EXPECT_TRUE(host.on_connections.empty());
}

TEST_F(IpoibConnected, ALostConnectionFallsBackAtOnce) {
  connected();
  interface->on_connection_lost(last(), Status::Disconnected, now);
  send(100);
  EXPECT_EQ(host.datagrams.size(), 1u);
  EXPECT_EQ(host.queries.size(), 1u);  // the path may be another
  EXPECT_EQ(host.reports.back().trouble, Trouble::ConnectionLost);
}

TEST_F(IpoibConnected, AnotherLidOfThePortEndsConnectionsAndJoinsAgain) {
  connected();
  PortState port = port_state();
  port.lid = Lid{99};
  interface->on_port(port, now);
  EXPECT_TRUE(host.link.carrier);
  EXPECT_EQ(host.disconnected, std::vector{last()});
  host.joins.clear();
  pass(settings.times.rejoin_spread);
  EXPECT_EQ(host.joins.size(), 3u);
}

TEST_F(IpoibConnected, ARestartedNeighbourMakesConnectionsStale) {
  connected();
  other.qpn = Qpn{0x555};
  const MacAddress again = introduce(other);
  EXPECT_EQ(again, mac);
  EXPECT_EQ(host.disconnected, std::vector{ConnectionId{1}});
  send(100);
  EXPECT_EQ(host.datagrams.back().qpn, Qpn{0x555});
  ASSERT_EQ(host.connects.size(), 2u);
  EXPECT_EQ(host.connects[1].second.service_id, 0x1000'0000'0000'0555u);
}

TEST_F(IpoibConnected, AnIdleConnectionIsClosed) {
  connected();
  pass(6min);
  EXPECT_EQ(host.disconnected, std::vector{last()});
  EXPECT_TRUE(interface->snapshot(now).connections.empty());
}

TEST_F(IpoibConnected, ArpStaysOnDatagrams) {
  connected();
  transmit(frame_to(mac, kTypeArp,
                    from_hex("0001080006040001" + own_mac() + "0a0000010000000000000a000002")));
  EXPECT_EQ(host.datagrams.size(), 1u);
  EXPECT_TRUE(host.on_connections.empty());
}

TEST_F(IpoibConnected, NeighboursWithoutTheFlagAreNotCalled) {
  const MacAddress plain = introduce(peer(3));
  transmit(frame_to(plain, kTypeIpv4, make_packet({}, 9, false)));
  answer_paths();
  EXPECT_EQ(host.connects.size(), 1u);
}

TEST_F(IpoibConnected, APassiveConnectionBringsMessages) {
  const auto accepted = request(test_gid(3), 0x103);
  ASSERT_TRUE(accepted.has_value());
  EXPECT_EQ(to_hex(std::as_bytes(std::span(&accepted->data, 1))), "000000480000fff4");
  receive_on(accepted->id);
  ASSERT_EQ(host.frames.size(), 1u);
  const MacAddress source{get<EthernetHeader>(host.frames[0].bytes).source};
  EXPECT_NE(source, kUnknownMac);
  receive_on(ConnectionId{999});
  EXPECT_EQ(dropped(Drop::MessageUnknownConnection), 1u);
  interface->on_connection_lost(accepted->id, Status::Disconnected, now);
  receive_on(accepted->id);
  EXPECT_EQ(dropped(Drop::MessageUnknownConnection), 2u);
}

TEST_F(IpoibConnected, ASecondPassiveConnectionReplacesTheFirst) {
  const auto first = request(test_gid(3), 0x103);
  const auto second = request(test_gid(3), 0x103);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(host.disconnected, std::vector{first->id});
}

TEST_F(IpoibConnected, RequestsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(request(test_gid(3), 0).error(), Status::Malformed);
  EXPECT_EQ(request(Gid{}, 5).error(), Status::Malformed);
  EXPECT_EQ(request(test_gid(1), 0x48).error(), Status::Malformed);  // itself
  EXPECT_EQ(interface->on_connect_request({test_gid(3), {}}, now).error(), Status::Malformed);
}

TEST_F(IpoibConnected, PassiveConnectionsHaveABound) {
  unsigned accepted = 0;
  for (std::uint32_t i = 0; i < 300; ++i) accepted += request(test_gid(3), 100 + i) ? 1u : 0u;
  EXPECT_EQ(accepted, settings.limits.connections);
  EXPECT_EQ(request(test_gid(4), 7).error(), Status::InsufficientResources);
  pass(1min);
  EXPECT_TRUE(request(test_gid(4), 7).has_value());
  pass(11min);
  EXPECT_EQ(interface->snapshot(now).connections.size(), 0u);
}

TEST_F(IpoibConnected, LargeFramesFillTheConnection) {
  connected();
  const Flow flow;
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 60'000, true)), offload_of(flow, 20'000));
  ASSERT_EQ(host.on_connections.size(), 3u);
  for (const SentOnConnection& sent : host.on_connections) {
    EXPECT_TRUE(has_right_checksums(kTypeIpv4, ConstBytes(sent.bytes).subspan(4)));
  }
}

TEST_F(IpoibConnected, AWholeFrameMustFitIntoTheReceiveBuffer) {
  connected(30'004);
  host.peers_take_large = true;
  const Flow flow;
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 25'000, true)), offload_of(flow, 2004));
  EXPECT_EQ(host.on_connections.size(), 1u);
  transmit(frame_to(mac, kTypeIpv4, make_packet(flow, 60'000, true)), offload_of(flow, 20'000));
  EXPECT_EQ(host.on_connections.size(), 1u + 3);
}

TEST(IpoibUnconnected, AnInterfaceOfDatagramsRefusesConnections) {
  FakeHost host;
  Interface interface(InterfaceBench::default_settings(), host);
  interface.on_port(InterfaceBench::port_state(), Instant{});
  const ConnectionData data{5u, 65524u};
  EXPECT_EQ(
      interface.on_connect_request({test_gid(3), std::as_bytes(std::span(&data, 1))}, Instant{})
          .error(),
      Status::NotSupported);
}

}  // namespace
}  // namespace ib::ipoib
