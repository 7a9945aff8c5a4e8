// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/node_addresses.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

TEST(NodeAddresses, ReadsBothFamilies) {
  EXPECT_EQ(parse_address("192.0.2.1"), verbs::ipv4_gid(0xc0000201));
  EXPECT_EQ(parse_address("fd00::1"), verbs::make_gid(0xfd00000000000000, 1));
  EXPECT_EQ(parse_address("::ffff:192.0.2.1"), verbs::ipv4_gid(0xc0000201));
}

TEST(NodeAddresses, RefusesWhatNoMachineHas) {
  for (const char* text : {"", "node1", "192.0.2", "192.0.2.256", "192.0.2.1/24", "0.0.0.0",
                           "::", "255.255.255.255", "224.0.0.1", "ff02::1", "fe80::1%lo"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

TEST(NodeAddresses, FindsTheInterface) {
  EXPECT_EQ(interface_of(verbs::ipv4_gid(0x7f000001), interfaces()), "lo");
  EXPECT_EQ(interface_of(verbs::ipv4_gid(0x7f4d0005), interfaces()), "lo")
      << "as any of 127.0.0.0/8";
  EXPECT_EQ(interface_of(verbs::ipv4_gid(0xc0000201), interfaces()), "")
      << "of documentation [RFC 5737]";
}

}  // namespace
}  // namespace ib::softib
