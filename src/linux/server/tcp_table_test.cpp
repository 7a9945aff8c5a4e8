// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/tcp_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <sstream>
#include <string>

namespace ib::os {
namespace {

using platform::TcpName;
using platform::TcpPair;

// As x86-64 prints them.
constexpr bool kIsLittle = std::endian::native == std::endian::little;
constexpr const char* kRest = " 00000000:00000000 00:00000000 00000000  1000        0 ";
const std::string kHeadline =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode";

std::string line(const std::string& addresses, const std::string& state, const std::string& inode) {
  return "  12: " + addresses + " " + state + kRest + inode + " 1 00000000a5a1fb29 20 4 30 10 -1";
}

TcpName ipv4(std::uint8_t last, std::uint16_t port) {
  TcpName name;
  name.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 77, 3, last};
  name.port = port;
  return name;
}

const std::string kPair = "02034D7F:1F90 01034D7F:9C41";
const std::string kMapped =
    "0000000000000000FFFF000002034D7F:1F90 0000000000000000FFFF000001034D7F:9C41";

class TcpTable : public testing::Test {
 protected:
  void SetUp() override {
    if (!kIsLittle) GTEST_SKIP() << "the lines are those of a little-endian machine";
  }
};

TEST_F(TcpTable, ALineHasBothAddressesAndWhetherADescriptorIsOpen) {
  for (const std::string& addresses : {kPair, kMapped}) {
    const auto accepted = parse_tcp_line(line(addresses, "01", "6126758"));
    ASSERT_TRUE(accepted) << addresses;
    EXPECT_EQ(accepted->local, ipv4(2, 8080)) << addresses;
    EXPECT_EQ(accepted->remote, ipv4(1, 40001)) << addresses;
    EXPECT_TRUE(accepted->has_descriptor);
    const auto waiting = parse_tcp_line(line(addresses, "01", "0"));
    ASSERT_TRUE(waiting);
    EXPECT_FALSE(waiting->has_descriptor) << "it waits in the backlog";
  }
}

TEST_F(TcpTable, AnIpv6AddressHasItsBytesInOrder) {
  const auto one = parse_tcp_line(line(
      "000080FE000000000201FF01FEFF0304:0001 00000000000000000000000001000000:0002", "01", "7"));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->local.address, (decltype(TcpName::address){0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 0xff,
                                                            1, 2, 4, 3, 0xff, 0xfe}));
  EXPECT_EQ(one->remote.address[15], 1);
}

TEST_F(TcpTable, OtherLinesAreNone) {
  EXPECT_FALSE(parse_tcp_line(kHeadline));
  EXPECT_FALSE(parse_tcp_line(line(kPair, "0A", "7"))) << "a listener";
  EXPECT_FALSE(parse_tcp_line(line(kPair, "08", "7"))) << "its peer has closed";
  for (const std::string& text :
       {std::string(), std::string("   "), std::string("1: 02034D7F:1F90"), "1: " + kPair + " 01",
        line("02034D7F 01034D7F:9C41", "01", "7"), line("02034D7F:1F90 :9C41", "01", "7"),
        line("02034D7:1F90 01034D7F:9C41", "01", "7"),
        line("02034D7F:11F90 01034D7F:9C41", "01", "7"),
        line("0203-D7F:1F90 01034D7F:9C41", "01", "7")}) {
    EXPECT_FALSE(parse_tcp_line(text)) << text;
  }
}

TEST_F(TcpTable, OnlyTheServersSocketCounts) {
  const std::vector<TcpPair> wanted{{ipv4(2, 8080), ipv4(1, 40001)},
                                    {ipv4(2, 8080), ipv4(1, 40002)},
                                    {ipv4(2, 8080), ipv4(1, 40003)}};
  std::istringstream table(kHeadline + "\n" + line(kMapped, "01", "99") + "\n" +
                           line("01034D7F:9C42 02034D7F:1F90", "01", "98") + "\n" +
                           line("02034D7F:1F90 01034D7F:9C42", "01", "0") + "\n");
  std::vector<bool> accepted(wanted.size());
  find_accepted(table, wanted, accepted);
  EXPECT_EQ(accepted, (std::vector<bool>{true, false, false}));
}

}  // namespace
}  // namespace ib::os
