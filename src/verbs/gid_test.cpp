// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/gid.h"

#include <gtest/gtest.h>

namespace ib::verbs {
namespace {

constexpr Gid kLinkLocal = make_gid(0xfe80000000000000, 0x025346fffe000005);

TEST(Gid, HasTheTextOfSysfsAndTheOneOfPeople) {
  EXPECT_EQ(long_text(kLinkLocal), "fe80:0000:0000:0000:0253:46ff:fe00:0005");
  EXPECT_EQ(address_text(kLinkLocal), "fe80::253:46ff:fe00:5");
  EXPECT_EQ(long_text(ipv4_gid(0x7f4d0001)), "0000:0000:0000:0000:0000:ffff:7f4d:0001");
  EXPECT_EQ(address_text(ipv4_gid(0x7f4d0001)), "127.77.0.1");
}

TEST(Gid, ZerosAreShortenedOnceAndWhereTheyAreMost) {
  EXPECT_EQ(address_text(Gid{}), "::");
  EXPECT_EQ(address_text(make_gid(0, 1)), "::1");
  EXPECT_EQ(address_text(make_gid(0x2001000000000000, 0)), "2001::");
  EXPECT_EQ(address_text(make_gid(0x2001000000000001, 0x0000000000000001)), "2001:0:0:1::1");
  EXPECT_EQ(address_text(make_gid(0x2001000000010000, 0x0000000100000001)), "2001:0:1::1:0:1");
  EXPECT_EQ(address_text(make_gid(0x2001000000010002, 0x0003000400050006)), "2001:0:1:2:3:4:5:6");
}

TEST(Gid, OfAHostIsWhatOneMachineCanHave) {
  EXPECT_TRUE(is_host_address(ipv4_gid(0x0a000001)));
  EXPECT_TRUE(is_host_address(kLinkLocal));
  for (const Gid& gid : {Gid{}, ipv4_gid(0), ipv4_gid(0xffffffff), ipv4_gid(0xe0000001),
                         make_gid(0xff02000000000000, 1)}) {
    EXPECT_FALSE(is_host_address(gid)) << address_text(gid);
  }
}

TEST(Gid, TellsIpv4AndMulticast) {
  EXPECT_TRUE(is_ipv4(ipv4_gid(0)));
  EXPECT_FALSE(is_ipv4(kLinkLocal));
  EXPECT_FALSE(is_ipv4(make_gid(1, 0x0000ffff01020304)));
  EXPECT_TRUE(is_multicast(make_gid(0xff02000000000000, 1)));
  EXPECT_TRUE(is_multicast(ipv4_gid(0xe0000001)));
  EXPECT_TRUE(is_multicast(ipv4_gid(0xefffffff)));
  EXPECT_FALSE(is_multicast(ipv4_gid(0xdfffffff)));
  EXPECT_FALSE(is_multicast(ipv4_gid(0xf0000000)));
  EXPECT_FALSE(is_multicast(kLinkLocal));
}

}  // namespace
}  // namespace ib::verbs
