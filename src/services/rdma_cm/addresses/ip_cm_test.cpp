// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/ip_cm.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace ib::services::rdma_cm {
namespace {

EndpointAddress v4(std::uint32_t ip, std::uint16_t port = 0) {
  EndpointAddress address = any_address(Family::Ipv4, port);
  address.ip = verbs::ipv4_gid(ip);
  return address;
}

TEST(IpCm, AServiceIdIsPortSpaceAndPort) {
  EXPECT_EQ(service_id(PortSpace::Tcp, 7471), 0x0000000001061d2full);
  EXPECT_EQ(service_id(PortSpace::Udp, 7), 0x0000000001110007ull);
  const auto back = service_of(0x0000000001061d2full);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->space, PortSpace::Tcp);
  EXPECT_EQ(back->port, 7471);
  EXPECT_FALSE(service_of(0x0000000001071d2full)) << "no port space of ours";
  EXPECT_FALSE(service_of(0x1000000001061d2full)) << "somebody else's service";
}

// Offsets and values of table 3 of the annex.
TEST(IpCm, TheHeaderOfAnIpv4ConnectionIsThatOfTheSpecification) {
  std::array<std::uint8_t, kIpHeaderBytes> bytes{};
  bytes.fill(0xee);
  write_ip_header({Family::Ipv4, 0x1234, verbs::ipv4_gid(0x0a000001), verbs::ipv4_gid(0x0a000002)},
                  bytes);
  std::array<std::uint8_t, kIpHeaderBytes> expected{0x00, 0x40, 0x12, 0x34};
  expected[16] = 10;
  expected[19] = 1;
  expected[32] = 10;
  expected[35] = 2;
  EXPECT_EQ(bytes, expected);
  const auto read = read_ip_header(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->family, Family::Ipv4);
  EXPECT_EQ(read->port, 0x1234);
  EXPECT_EQ(read->source, verbs::ipv4_gid(0x0a000001));
  EXPECT_EQ(read->destination, verbs::ipv4_gid(0x0a000002));
}

TEST(IpCm, TheHeaderOfAnIpv6ConnectionHasWholeAddresses) {
  std::array<std::uint8_t, kIpHeaderBytes> bytes{};
  const verbs::Gid source = verbs::make_gid(0xfd00000000000000ull, 1);
  const verbs::Gid destination = verbs::make_gid(0xfd00000000000000ull, 2);
  write_ip_header({Family::Ipv6, 80, source, destination}, bytes);
  EXPECT_EQ(bytes[1], 0x60);
  const auto read = read_ip_header(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->source, source);
  EXPECT_EQ(read->destination, destination);
}

TEST(IpCm, AHeaderThatIsShortOrOfAnotherVersionIsNotRead) {
  std::vector<std::uint8_t> bytes(kIpHeaderBytes);
  bytes[1] = 0x40;
  EXPECT_TRUE(read_ip_header(bytes));
  bytes[0] = 1;
  EXPECT_FALSE(read_ip_header(bytes));
  bytes[0] = 0;
  bytes[1] = 0x50;
  EXPECT_FALSE(read_ip_header(bytes));
  bytes[1] = 0x40;
  bytes.pop_back();
  EXPECT_FALSE(read_ip_header(bytes));
}

// RFC 4391, section 4: ff12:401b:<P_Key>::<28 bits of the group>.
TEST(IpCm, AGroupOfIpv4HasTheGidOfIpoib) {
  const verbs::Gid ipoib = multicast_gid(v4(0xef010203), PortSpace::Ipoib, 0xffff);
  EXPECT_EQ(verbs::long_text(ipoib), "ff12:401b:ffff:0000:0000:0000:0f01:0203");
  const verbs::Gid own = multicast_gid(v4(0xef010203), PortSpace::Udp, 0x8001);
  EXPECT_EQ(verbs::long_text(own), "ff12:4001:8001:0000:0000:0000:0f01:0203");
}

TEST(IpCm, AGroupOfIpv6MayBeAGidAlready) {
  EndpointAddress group = any_address(Family::Ipv6);
  group.ip = verbs::make_gid(0xff02000000000000ull, 0x1234);
  EXPECT_EQ(verbs::long_text(multicast_gid(group, PortSpace::Ipoib, 0xffff)),
            "ff12:601b:ffff:0000:0000:0000:0000:1234");
  group.ip = verbs::make_gid(0xff10a01b00000000ull, 5);
  EXPECT_EQ(multicast_gid(group, PortSpace::Udp, 0xffff), group.ip);
}

TEST(EndpointAddress, GoesThroughASockaddrAndBack) {
  std::array<std::uint8_t, 28> bytes{};
  write_address(v4(0x7f4d0001, 7471), bytes);
  EXPECT_EQ(bytes[2], 0x1d);
  EXPECT_EQ(bytes[4], 127);
  EXPECT_EQ(read_address(bytes), v4(0x7f4d0001, 7471));
  EXPECT_EQ(text_of(v4(0x7f4d0001, 7471)), "127.77.0.1:7471");
  EndpointAddress six = any_address(Family::Ipv6, 9);
  six.ip = verbs::make_gid(0, 1);
  six.scope = 3;
  write_address(six, bytes);
  EXPECT_EQ(read_address(bytes), six);
  EXPECT_TRUE(is_loopback(six));
  EXPECT_FALSE(read_address(std::span(bytes).first(27))) << "too short for its family";
  bytes[0] = 1;
  EXPECT_FALSE(read_address(bytes)) << "AF_UNIX";
}

}  // namespace
}  // namespace ib::services::rdma_cm
