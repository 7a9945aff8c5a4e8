// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/node_names.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>

namespace ib::host_abi::preload {
namespace {

std::string pick(const std::string& text, int family) {
  char out[kAddressSize] = "untouched";
  return pick_address(text.data(), text.size(), family, out) ? out : "none";
}

TEST(NodeNames, AreTheOnesThatSoftibAllows) {
  EXPECT_TRUE(can_be_node("node1"));
  EXPECT_TRUE(can_be_node("A_b-c.d"));
  EXPECT_TRUE(can_be_node(std::string(63, 'x').c_str()));
  EXPECT_FALSE(can_be_node(std::string(64, 'x').c_str()));
  EXPECT_FALSE(can_be_node(""));
  EXPECT_FALSE(can_be_node("10.0.0.1"));
  EXPECT_FALSE(can_be_node("17"));
  EXPECT_FALSE(can_be_node("fe80::1"));
  EXPECT_FALSE(can_be_node("../etc"));
  EXPECT_FALSE(can_be_node("a b"));
}

TEST(NodeNames, TheFirstAddressOfTheFamilyCounts) {
  const std::string text = "127.77.0.1\nfd00::1\n10.0.0.1\n";
  EXPECT_EQ(pick(text, AF_UNSPEC), "127.77.0.1");
  EXPECT_EQ(pick(text, AF_INET), "127.77.0.1");
  EXPECT_EQ(pick(text, AF_INET6), "fd00::1");
  EXPECT_EQ(pick("fd00::1\n10.0.0.1", AF_INET), "10.0.0.1");
  EXPECT_EQ(pick("127.77.0.1\n10.0.0.1\n", AF_INET6), "127.77.0.1")
      << "the real function refuses it";
}

TEST(NodeNames, DamagedTextGivesNothingTooLong) {
  EXPECT_EQ(pick("", AF_UNSPEC), "none");
  EXPECT_EQ(pick("\n\n", AF_UNSPEC), "none");
  EXPECT_EQ(pick(std::string(kAddressSize, '1') + "\n", AF_UNSPEC), "none");
  EXPECT_EQ(pick(std::string(kAddressSize - 1, '1'), AF_UNSPEC),
            std::string(kAddressSize - 1, '1'));
}

}  // namespace
}  // namespace ib::host_abi::preload
