// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/common/ranges.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

namespace ib::host_abi::sockets {
namespace {

Endpoint ipv4(const char* text, std::uint16_t port = 80) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, text, &name.sin_addr), 1);
  return endpoint_of(reinterpret_cast<const sockaddr*>(&name), sizeof name);
}

Endpoint ipv6(const char* text, std::uint16_t port = 80) {
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &name.sin6_addr), 1);
  return endpoint_of(reinterpret_cast<const sockaddr*>(&name), sizeof name);
}

TEST(Ranges, ContainTheirAddressesOnly) {
  Ranges ranges;
  ASSERT_TRUE(ranges.parse("10.1.0.0/16,127.77.0.1,fd00::/7"));
  EXPECT_TRUE(ranges.contains(ipv4("10.1.255.7").address));
  EXPECT_FALSE(ranges.contains(ipv4("10.2.0.1").address));
  EXPECT_TRUE(ranges.contains(ipv4("127.77.0.1").address));
  EXPECT_FALSE(ranges.contains(ipv4("127.77.0.2").address));
  EXPECT_TRUE(ranges.contains(ipv6("fc00::1").address));
  EXPECT_FALSE(ranges.contains(ipv6("fe80::1").address));
}

TEST(Ranges, BitsNeedNotBeWholeBytes) {
  Ranges ranges;
  ASSERT_TRUE(ranges.parse("10.16.0.0/12"));
  EXPECT_TRUE(ranges.contains(ipv4("10.31.0.1").address));
  EXPECT_FALSE(ranges.contains(ipv4("10.32.0.1").address));
}

TEST(Ranges, AMappedAddressIsTheIpv4One) {
  Ranges ranges;
  ASSERT_TRUE(ranges.parse("10.1.0.0/16"));
  EXPECT_TRUE(ranges.contains(ipv6("::ffff:10.1.2.3").address));
  EXPECT_TRUE(is_mapped(ipv6("::ffff:10.1.2.3").address));
  EXPECT_FALSE(is_mapped(ipv6("::1").address));
}

TEST(Ranges, TheFabricIsEveryAddress) {
  Ranges ranges;
  ASSERT_TRUE(ranges.parse("fabric"));
  EXPECT_TRUE(ranges.contains(ipv4("192.0.2.1").address));
}

TEST(Ranges, OtherTextsAreRefused) {
  Ranges ranges;
  for (const char* text : {"", "x", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/8,", ",",
                           "10.0.0.0/-1", "10.0.0.0/8x", "node1"}) {
    EXPECT_FALSE(ranges.parse(text)) << text;
  }
  std::string many = "10.0.0.1";
  for (std::size_t i = 0; i < Ranges::kMost; ++i) many += ",10.0.0.1";
  EXPECT_FALSE(ranges.parse(many));
}

TEST(Endpoints, OfShortOrOtherAddressesAreNotValid) {
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  EXPECT_FALSE(endpoint_of(reinterpret_cast<const sockaddr*>(&name), 16).valid);
  name.sin6_family = AF_UNIX;
  EXPECT_FALSE(endpoint_of(reinterpret_cast<const sockaddr*>(&name), sizeof name).valid);
  EXPECT_FALSE(endpoint_of(nullptr, 0).valid);
}

TEST(Endpoints, HaveThePort) {
  EXPECT_EQ(ipv4("10.0.0.1", 7471).port, 7471);
  EXPECT_EQ(ipv6("::1", 7472).port, 7472);
}

TEST(Endpoints, TheWildcardIsThatOfItsFamily) {
  EXPECT_TRUE(is_wildcard(ipv4("0.0.0.0").address));
  EXPECT_TRUE(is_wildcard(ipv6("::").address));
  EXPECT_FALSE(is_wildcard(ipv4("127.0.0.1").address));
}

}  // namespace
}  // namespace ib::host_abi::sockets
