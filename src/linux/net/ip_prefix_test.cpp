// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/ip_prefix.h"

#include <gtest/gtest.h>

namespace ib::os::net {
namespace {

IpPrefix ipv4(std::uint32_t address, std::uint32_t bits) {
  return {verbs::ipv4_gid(address), bits};
}

TEST(IpPrefix, ANetworkHasNoBitsBehindItsPrefix) {
  EXPECT_EQ(network_of(ipv4(0x0a976001, 24)), ipv4(0x0a976000, 24));
  EXPECT_EQ(network_of(ipv4(0x0a9760ff, 19)), ipv4(0x0a976000, 19));
  EXPECT_EQ(network_of(ipv4(0x0a9760ff, 27)), ipv4(0x0a9760e0, 27));
  EXPECT_EQ(network_of(ipv4(0x0a9760ff, 32)), ipv4(0x0a9760ff, 32));
  EXPECT_EQ(network_of(ipv4(0x0a9760ff, 0)), ipv4(0, 0));
  const IpPrefix ipv6{verbs::make_gid(0xfd69'6200'0a97'6000, 5), 64};
  EXPECT_EQ(network_of(ipv6).ip, verbs::make_gid(0xfd69'6200'0a97'6000, 0));
}

TEST(IpPrefix, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(text_of(ipv4(0x0a976001, 24)), "10.151.96.1/24");
}

}  // namespace
}  // namespace ib::os::net
