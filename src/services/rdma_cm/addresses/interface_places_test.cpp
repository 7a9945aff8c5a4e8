// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/interface_places.h"

#include "services/rdma_cm/test/programs_test.h"
#include "services/rdma_cm/words/words.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint16_t kFull = 0xffff;
constexpr std::uint16_t kChild = 0x8001;

EndpointAddress v4(std::uint32_t ip, std::uint16_t port = 7471) {
  EndpointAddress address = any_address(Family::Ipv4, port);
  address.ip = verbs::ipv4_gid(ip);
  return address;
}
EndpointAddress v6(std::uint64_t prefix, std::uint64_t low, std::uint64_t scope = 0) {
  EndpointAddress address = any_address(Family::Ipv6, 7471);
  address.ip = verbs::make_gid(prefix, low);
  address.scope = scope;
  return address;
}
constexpr std::uint64_t kLinkLocal = 0xfe80ull << 48;

// Two nodes with ib0 (10.0.0.1 and .2, IPv6) and ib0.8001 (10.0.1.1 and .2).
class InterfacePlaces : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t node : {0u, 1u}) {
      port(node).pkeys = {kFull, kChild};
      const std::uint32_t number = node + 1;
      set(node, "ib0", 2, kFull,
          {{v4(0x0a000000 + number), 24},
           {v6(0xfd00ull << 48, number), 64},
           {v6(kLinkLocal, number), 64}});
      set(node, "ib0.8001", 3, kChild,
          {{v4(0x0a000100 + number), 24}, {v6(kLinkLocal, number), 64}});
    }
  }
  void set(std::uint32_t node, const char* name, std::uint32_t index, std::uint16_t pkey,
           std::initializer_list<std::pair<EndpointAddress, std::uint32_t>> addresses) {
    fabric::IpInterface interface;
    interface.name = name;
    interface.index = index;
    interface.port = &port(node);
    interface.pkey = pkey;
    for (const auto& [address, bits] : addresses) interface.addresses.push_back({address.ip, bits});
    ASSERT_EQ(w.fabric.ip_interfaces().set(node, interface), Status::Ok);
  }
  fabric::Port& port(std::uint32_t node) { return w.fabric.nodes()[node].hcas[0].ports[0]; }
  const fabric::Node& node(std::uint32_t number) { return w.fabric.nodes()[number]; }
  Error find(const EndpointAddress& from, const EndpointAddress& to) {
    way = {};
    return find_way(w.fabric, node(0), from, to, way);
  }

  World w{verbs::LinkLayer::InfiniBand};
  Way way;
};

TEST_F(InterfacePlaces, AnAddressIsThatOfItsInterface) {
  EXPECT_TRUE(has_address(w.fabric, node(0), v4(0x0a000101)));
  EXPECT_FALSE(has_address(w.fabric, node(1), v4(0x0a000101)));
  EXPECT_EQ(port_of(w.fabric, node(0), v4(0x0a000101)), &port(0));
  EXPECT_EQ(interface_of(w.fabric, node(0), v6(kLinkLocal, 1, 3))->pkey, kChild);
  EXPECT_EQ(interface_of(w.fabric, node(0), v6(kLinkLocal, 1, 2))->pkey, kFull);
  EXPECT_EQ(interface_of(w.fabric, node(0), v6(kLinkLocal, 1, 9)), nullptr);
  port(0).state = verbs::PortState::Down;
  EXPECT_EQ(port_of(w.fabric, node(0), v4(0x0a000101)), nullptr);
}

TEST_F(InterfacePlaces, AWildcardSendsFromTheInterfaceInWhoseNetworkThePeerIs) {
  ASSERT_EQ(find(any_address(Family::Ipv4), v4(0x0a000102)), Error::None);
  EXPECT_EQ(way.source.ip, v4(0x0a000101).ip);
  EXPECT_EQ(way.pkey, kChild);
  EXPECT_EQ(way.from, &port(0));
  EXPECT_EQ(way.to, &port(1));
  EXPECT_EQ(find_path(way, 0)->pkey, kChild);
  EXPECT_EQ(find_path(way, 0)->pkey_index, 1);
  ASSERT_EQ(find(any_address(Family::Ipv6), v6(0xfd00ull << 48, 2)), Error::None);
  EXPECT_EQ(way.source.ip, v6(0xfd00ull << 48, 1).ip);
  EXPECT_EQ(way.pkey, kFull);
}

TEST_F(InterfacePlaces, ThePartitionIsThatOfTheSource) {
  ASSERT_EQ(find(v4(0x0a000001), v4(0x0a000002)), Error::None);
  EXPECT_EQ(way.pkey, kFull);
  EXPECT_EQ(find(v4(0x0a000001), v4(0x0a000102)), Error::HostUnreachable) << "another partition";
  EXPECT_EQ(no_way_text(w.fabric, node(0), v4(0x0a000001), v4(0x0a000102), Error::HostUnreachable),
            "10.0.1.2 is at ib0.8001 of b (P_Key 0x8001), and the interface of a that would lead "
            "there does not reach it");
  port(1).state = verbs::PortState::Down;
  EXPECT_EQ(find(v4(0x0a000001), v4(0x0a000002)), Error::HostUnreachable);
}

// Packets between them pass no HCA [IBA1 10.9.3].
TEST_F(InterfacePlaces, TwoLimitedMembersOfAPartitionDoNotReachEachOther) {
  constexpr std::uint16_t kLimited = kChild & 0x7fff;
  const auto set_child = [this](std::uint32_t node, std::uint16_t pkey) {
    port(node).pkeys = {kFull, pkey};
    set(node, "ib0.8001", 3, pkey, {{v4(0x0a000101 + node), 24}});
  };
  set_child(1, kLimited);
  ASSERT_EQ(find(v4(0x0a000101), v4(0x0a000102)), Error::None) << "a full member and a limited one";
  set_child(0, kLimited);
  EXPECT_EQ(find(v4(0x0a000101), v4(0x0a000102)), Error::HostUnreachable);
}

TEST_F(InterfacePlaces, ALinkLocalAddressIsOnTheLinkOfItsScope) {
  ASSERT_EQ(find(any_address(Family::Ipv6), v6(kLinkLocal, 2, 3)), Error::None);
  EXPECT_EQ(way.pkey, kChild);
  EXPECT_EQ(way.source.ip, v6(kLinkLocal, 1).ip);
  EXPECT_EQ(way.source.scope, 3u);
  ASSERT_EQ(find(any_address(Family::Ipv6), v6(kLinkLocal, 2, 2)), Error::None);
  EXPECT_EQ(way.pkey, kFull);
}

TEST_F(InterfacePlaces, AnOwnAddressIsReachedFromItself) {
  ASSERT_EQ(find(any_address(Family::Ipv4), v4(0x0a000101)), Error::None);
  EXPECT_EQ(way.source.ip, v4(0x0a000101).ip);
  EXPECT_EQ(way.to, &port(0));
  EXPECT_EQ(way.pkey, kChild);
}

TEST_F(InterfacePlaces, ANodeWithoutANetworkIsReachedByItsAddressAsEver) {
  w.fabric.ip_interfaces().remove_all_of(0);
  set(0, "ib0", 2, kFull, {{v4(0x0a000001), 24}});
  EndpointAddress peer = v4(0);
  peer.ip = w.address(1);
  ASSERT_EQ(find(v4(0x0a000001), peer), Error::None);
  EXPECT_EQ(way.to, &port(1));
  EXPECT_EQ(find(any_address(Family::Ipv4), v4(0x0a000002)), Error::NetUnreachable);
}

TEST_F(InterfacePlaces, ARequestArrivesInThePartitionOfTheInterfaceOnly) {
  EXPECT_TRUE(arrives_at(w.fabric, port(1), kChild, node(1), v4(0x0a000102)));
  EXPECT_TRUE(arrives_at(w.fabric, port(1), kChild & 0x7fff, node(1), v4(0x0a000102)));
  EXPECT_FALSE(arrives_at(w.fabric, port(1), kFull, node(1), v4(0x0a000102)));
  EndpointAddress own = v4(0);
  own.ip = w.address(1);
  EXPECT_TRUE(arrives_at(w.fabric, port(1), kFull, node(1), own)) << "of no interface";
}

TEST_F(InterfacePlaces, AConnectionIsInThePartitionOfItsAddresses) {
  Program server{w, 1};
  Program client{w, 0};
  const std::uint32_t listener = server.create(PortSpace::Tcp, 0x11);
  ASSERT_EQ(server.bind(listener, v4(0x0a000102)), Error::None);
  ASSERT_EQ(server.listen(listener), Error::None);
  const std::uint32_t id = client.create(PortSpace::Tcp, 0x22);
  ASSERT_EQ(client.resolve(id, v4(0x0a000102)), Error::None);
  client.expect(Event::AddrResolved);
  EXPECT_EQ(client.attributes(id, verbs::QpState::Init).pkey_index, 1);
  ASSERT_EQ(client.write(Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
  client.expect(Event::RouteResolved);
  ASSERT_EQ(client.connect(id, 7), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  EXPECT_EQ(server.attributes(request.id, verbs::QpState::Init).pkey_index, 1);
}

// As on Linux, where only a bond brings ADDR_CHANGE: an id keeps its port.
TEST_F(InterfacePlaces, AnIdHearsNothingOfAnAddressThatGoes) {
  Program program{w, 0};
  const std::uint32_t id = program.create(PortSpace::Tcp, 0x11);
  ASSERT_EQ(program.bind(id, v4(0x0a000001)), Error::None);
  w.fabric.ip_interfaces().remove_all_of(0);
  w.connector.report_ports(w.fabric.nodes()[0].hcas[0]);
  EXPECT_FALSE(program.event());
  const std::uint32_t later = program.create(PortSpace::Tcp, 0x12);
  EXPECT_EQ(program.bind(later, v4(0x0a000001)), Error::NoAddress);
}

}  // namespace
}  // namespace ib::services::rdma_cm
