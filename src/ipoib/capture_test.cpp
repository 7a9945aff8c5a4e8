// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Captures as tshark reads them.
#include "ipoib/capture.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ib::ipoib::driver {
namespace {

// A request of RFC 4391 9.1.1: 20-byte hardware addresses, type 32.
std::vector<std::byte> arp_request() {
  std::vector<std::byte> bytes;
  const auto add = [&bytes](std::initializer_list<int> values) {
    for (const int each : values) bytes.push_back(static_cast<std::byte>(each));
  };
  add({8, 6, 0, 0, 0, 32, 8, 0, 20, 4, 0, 1});
  add({0, 0, 0, 0x11, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0x53, 0x46, 0, 0, 0, 1, 10, 0, 0, 1});
  for (int i = 0; i < 20; ++i) add({0});
  add({10, 0, 0, 2});
  return bytes;
}

// A packet of IPv4 (protocol 253, for experiments) with `more` bytes behind its header.
std::vector<std::byte> ip_packet(std::size_t more) {
  std::vector<std::byte> bytes(4 + 20 + more);
  const std::array<int, 24> head{8,  0,   0, 0, 0x45, 0, 0, 0, 0,  0, 0, 0,
                                 64, 253, 0, 0, 10,   0, 0, 1, 10, 0, 0, 2};
  for (std::size_t i = 0; i < head.size(); ++i) bytes[i] = static_cast<std::byte>(head[i]);
  bytes[6] = static_cast<std::byte>((20 + more) >> 8);
  bytes[7] = static_cast<std::byte>(20 + more);
  return bytes;
}

Gid broadcast() {
  Gid gid;
  gid.bytes = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  return gid;
}

std::string tshark(const std::string& file, const std::string& fields) {
  const std::string command = "tshark -r '" + file +
                              "' --disable-protocol rpcordma -T fields -E separator=, " + fields +
                              " -e _ws.malformed 2>/dev/null";
  std::FILE* const out = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> part{};
  while (out != nullptr && std::fgets(part.data(), part.size(), out) != nullptr)
    text += part.data();
  EXPECT_TRUE(out != nullptr && pclose(out) == 0) << command;
  return text;
}

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "no tshark";
    auto made = Capture::create(file_);
    ASSERT_TRUE(made);
    capture_ = *std::move(made);
  }
  void TearDown() override { std::remove(file_.c_str()); }

  std::string file_ = testing::TempDir() + "softib_capture_test.pcap";
  std::unique_ptr<Capture> capture_;
};

TEST_F(CaptureTest, ABroadcastOfArpHasTwentyByteAddresses) {
  Capture::Route route;
  route.slid = 3;
  route.dlid = 0xc000;
  route.dest_qpn = 0xffffff;
  route.datagram = {0x0b1b, 0x11};
  route.gids = {Gid{}, broadcast()};
  capture_->add(route, arp_request());
  EXPECT_EQ(tshark(file_,
                   "-e infiniband.lrh.dlid -e infiniband.deth.srcqp -e arp.hw.type -e arp.hw.size "
                   "-e arp.src.proto_ipv4 -e arp.dst.proto_ipv4"),
            "49152,0x00000011,32,20,10.0.0.1,10.0.0.2,\n");
}

TEST_F(CaptureTest, AnIpPacketOfADatagramAndOfAConnectionIsRead) {
  Capture::Route route;
  route.dest_qpn = 0x12;
  route.datagram = {0x0b1b, 0x11};
  capture_->add(route, ip_packet(101));
  route.datagram.reset();
  capture_->add(route, ip_packet(60'000));
  EXPECT_EQ(tshark(file_, "-e infiniband.bth.opcode -e ip.src -e ip.len"),
            "100,10.0.0.1,121,\n4,10.0.0.1,60020,\n");
}

}  // namespace
}  // namespace ib::ipoib::driver
