// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids with AF_IB addresses, and addresses that move.
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/test/programs_test.h"

#include <gtest/gtest.h>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint64_t kTcp = 0x01060000;
constexpr std::uint64_t kIb = 0x013f0000;
constexpr std::uint16_t kPkey = 0xffff;

class RdmaCmIb : public testing::Test {
 protected:
  World w{verbs::LinkLayer::InfiniBand};
  Program server{w, 0};
  Program client{w, 1};

  const fabric::Port& port(std::uint32_t node) const {
    return w.fabric.nodes()[node].hcas[0].ports[0];
  }
  EndpointAddress at(std::uint32_t node, std::uint64_t service) const {
    return ib_address(port(node).gid(), kPkey, service);
  }
  std::uint32_t listen(const EndpointAddress& address, PortSpace space = PortSpace::Ib) {
    const std::uint32_t id = server.create(space, 0x11);
    EXPECT_EQ(server.bind(id, address), Error::None);
    EXPECT_EQ(server.listen(id), Error::None);
    return id;
  }
  std::uint32_t route(const EndpointAddress& address, PortSpace space = PortSpace::Ib) {
    const std::uint32_t id = client.create(space, 0x22);
    EXPECT_EQ(client.resolve(id, address), Error::None);
    client.expect(Event::AddrResolved);
    EXPECT_EQ(client.write(Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
    client.expect(Event::RouteResolved);
    return id;
  }
};

// librdmacm holds a lock during its probe, so that an HCA here would make it wait for itself.
TEST_F(RdmaCmIb, TheProbeOfLibrdmacmBindsAndHasNoDevice) {
  EndpointAddress probe = any_address(Family::Ib);
  probe.service_id = kTcp;
  probe.service_mask = ~std::uint64_t{0xffff};
  const std::uint32_t id = server.create(PortSpace::Ib);
  ASSERT_EQ(server.bind(id, probe), Error::None);
  const auto out = server.ask(id, ucma::QueryOption::Addr);
  EXPECT_EQ(out.node_guid, (std::array<std::uint8_t, 8>{}));
  EXPECT_EQ(out.src_size, 48);
  const auto own = read_address(out.src_addr);
  EXPECT_GE(own->port, 32768) << "one was chosen";
  EXPECT_EQ(own->service_id, kTcp + own->port);
  EXPECT_EQ(own->service_mask, ~std::uint64_t{0});
}

TEST_F(RdmaCmIb, ThePortSpaceIsThatOfTheServiceId) {
  const auto bind = [this](PortSpace space, std::uint64_t service) {
    return server.bind(server.create(space), ib_address({}, kPkey, service));
  };
  EXPECT_EQ(bind(PortSpace::Tcp, kTcp | 1), Error::None);
  EXPECT_EQ(bind(PortSpace::Tcp, kIb | 2), Error::NoProtocol);
  EXPECT_EQ(bind(PortSpace::Udp, kTcp | 3), Error::NoProtocol);
  EXPECT_EQ(bind(PortSpace::Ib, 0xabcd0000 | 4), Error::NoProtocol);
  EXPECT_EQ(bind(PortSpace::Ib, kTcp | 1), Error::NoAddress) << "the port is taken";
  const std::uint32_t ip = server.create(PortSpace::Tcp);
  EXPECT_EQ(server.bind(ip, verbs::ipv4_gid(0), 1), Error::NoAddress) << "by all families";
}

TEST_F(RdmaCmIb, AGidOfAnotherNodeIsNoDeviceHere) {
  EXPECT_EQ(server.bind(server.create(), at(1, kTcp | 5)), Error::NoDevice);
}

TEST_F(RdmaCmIb, AConnectionHasAllOfThePrivateDataForItself) {
  listen(at(0, kIb | 77));
  const std::uint32_t active = route(at(0, kIb | 77));
  const auto resolved = client.ask(active, ucma::QueryOption::Gid);
  EXPECT_EQ(read_address(resolved.src_addr)->ip, port(1).gid());
  EXPECT_EQ(read_address(resolved.src_addr)->pkey, kPkey) << "the destination's";
  EXPECT_EQ(*read_address(resolved.dst_addr), at(0, kIb | 77));
  ASSERT_EQ(client.connect(active, 0x123, std::string(92, 'x')), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  const auto asked = param_of<ucma::ConnParam>(request);
  EXPECT_EQ(asked.private_data_len, 92);
  EXPECT_EQ(text_of(asked, 92), std::string(92, 'x'));
  const auto ends = server.ask(request.id, ucma::QueryOption::Addr);
  EXPECT_EQ(*read_address(ends.src_addr), at(0, kIb | 77));
  EXPECT_EQ(read_address(ends.dst_addr)->ip, port(1).gid());
  ASSERT_EQ(server.accept(request.id, 0x456, 0x33), Error::None);
  client.expect(Event::ConnectResponse);
  EXPECT_EQ(client.attributes(active, verbs::QpState::Rtr).ah_attr.dlid, port(0).lid);
  ASSERT_EQ(client.make_ready(active), Error::None);
  server.expect(Event::Established);
}

TEST_F(RdmaCmIb, AProgramWithIpAddressesAndOneWithGidsShareANode) {
  listen(at(0, kTcp | 80));
  const std::uint32_t ip = server.create(PortSpace::Tcp, 0x44);
  ASSERT_EQ(server.bind(ip, w.address(0), 80), Error::None);
  ASSERT_EQ(server.listen(ip), Error::None);
  ASSERT_EQ(client.connect(route(at(0, kTcp | 80), PortSpace::Tcp), 1), Error::None);
  EXPECT_EQ(server.expect(Event::ConnectRequest).uid, 0x11u);
  ASSERT_EQ(client.connect(route(Program::at(w.address(0), 80), PortSpace::Tcp), 1), Error::None);
  EXPECT_EQ(server.expect(Event::ConnectRequest).uid, 0x44u);
}

TEST_F(RdmaCmIb, AGidThatNobodyHasIsFoundOutWhenTheRouteIsResolved) {
  EndpointAddress nobody = at(0, kTcp | 1);
  nobody.ip[15] ^= 0xff;
  const std::uint32_t id = client.create();
  EXPECT_EQ(client.resolve(id, nobody), Error::None);
  client.expect(Event::AddrResolved);
  EXPECT_EQ(client.write(Code::ResolveRoute, ucma::ResolveRoute{id, 0}).error, Error::None);
  EXPECT_EQ(client.expect(Event::RouteError).status, ucma::negative(Error::HostUnreachable));
}

TEST_F(RdmaCmIb, APartitionThatThePortIsNotInHasNoDevice) {
  EndpointAddress other = at(0, kTcp | 1);
  other.pkey = 0x8123;
  const std::uint32_t id = client.create();
  EXPECT_EQ(client.resolve(id, other), Error::None);
  EXPECT_EQ(client.expect(Event::AddrError).status, ucma::negative(Error::NoDevice));
}

TEST_F(RdmaCmIb, DatagramsHaveNoIpHeaderEither) {
  listen(ib_address({}, kPkey, 0x01110000 | 9), PortSpace::Udp);
  const std::uint32_t active = route(at(0, 0x01110000 | 9), PortSpace::Udp);
  ASSERT_EQ(client.connect(active, 7, "hi"), Error::None);
  const ucma::EventOut request = server.expect(Event::ConnectRequest);
  EXPECT_EQ(param_of<ucma::UdParam>(request).private_data_len, 216);
  EXPECT_EQ(text_of(param_of<ucma::UdParam>(request), 2), "hi");
}

TEST_F(RdmaCmIb, AGroupIsNamedByItsGid) {
  const std::uint32_t id = server.create(PortSpace::Udp);
  ASSERT_EQ(server.bind(id, at(0, 0x01110000 | 9)), Error::None);
  EndpointAddress group = any_address(Family::Ib);
  group.ip = verbs::make_gid(0xff12'401b'ffff'0000, 7);
  ucma::JoinMcast join;
  join.id = id;
  join.uid = 5;
  join.addr_size = 48;
  write_address(group, join.addr);
  ASSERT_EQ(server.write(Code::JoinMcast, join).error, Error::None);
  const auto joined = param_of<ucma::UdParam>(server.expect(Event::MulticastJoin));
  EXPECT_EQ(joined.ah_attr.dgid, group.ip);
}

TEST(RdmaCmAddresses, AnAddressThatGoesIsReportedOnce) {
  World w(verbs::LinkLayer::Ethernet);
  Program program(w, 0);
  const std::uint32_t id = program.create(PortSpace::Tcp, 0x11);
  ASSERT_EQ(program.bind(id, w.address(0), 7471), Error::None);
  fabric::Node& node = *w.fabric.find_node("a");
  w.connector.report_ports(node.hcas[0]);
  EXPECT_FALSE(program.event()) << "all is as it was";
  const std::vector<fabric::Address> before = node.addresses;
  ASSERT_EQ(w.fabric.set_addresses(node, {}, node.address_source), Status::Ok);
  w.connector.report_ports(node.hcas[0]);
  EXPECT_EQ(program.expect(Event::AddrChange).uid, 0x11u);
  w.connector.report_ports(node.hcas[0]);
  EXPECT_FALSE(program.event());
  ASSERT_EQ(w.fabric.set_addresses(node, before, node.address_source), Status::Ok);
  w.connector.report_ports(node.hcas[0]);
  EXPECT_FALSE(program.event()) << "it is back";
}

}  // namespace
}  // namespace ib::services::rdma_cm
