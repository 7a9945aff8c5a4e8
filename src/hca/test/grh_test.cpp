// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/grh.h"

#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <vector>

namespace ib::hca {
namespace {

struct SentRoute {
  PortEntry port;
  verbs::AddressVector av;
  unsigned service_level = 0;

  explicit SentRoute(verbs::LinkLayer layer) {
    port.link_layer.store(layer);
    port.gids[0] = verbs::make_gid(0xfe80000000000000, 0x1112131415161718);
    port.gids[2] = verbs::ipv4_gid(0x0a000001);
    av.is_global = 1;
    av.dgid = verbs::make_gid(0xfe80000000000000, 0x2122232425262728);
    av.traffic_class = 0x5a;
    av.flow_label = 0x12345;
    av.hop_limit = 7;
    av.sl = 3;
  }
  std::vector<unsigned> header(std::uint32_t bytes, bool immediate = false) {
    RouteHeader header{};
    service_level = describe_route(av, port, bytes, immediate, header);
    std::vector<unsigned> numbers;
    for (const std::byte b : header) numbers.push_back(std::to_integer<unsigned>(b));
    return numbers;
  }
};

const std::vector<unsigned> kGids = {
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};

std::vector<unsigned> with_gids(std::vector<unsigned> first) {
  first.insert(first.end(), kGids.begin(), kGids.end());
  return first;
}

TEST(Grh, OfInfiniBand) {
  SentRoute route(verbs::LinkLayer::InfiniBand);
  EXPECT_EQ(route.header(5), with_gids({0x65, 0xa1, 0x23, 0x45, 0, 32, 0x1b, 7}));
  EXPECT_EQ(route.service_level, 3u);
  EXPECT_EQ(route.header(8, true), with_gids({0x65, 0xa1, 0x23, 0x45, 0, 36, 0x1b, 7}));
  route.av.hop_limit = 0;
  EXPECT_EQ(route.header(8)[7], 0u) << "as the consumer wants it";
}

TEST(Grh, OfRoceIsTheIpv6HeaderOfItsUdpPacket) {
  SentRoute route(verbs::LinkLayer::Ethernet);
  EXPECT_EQ(route.header(5), with_gids({0x65, 0xa1, 0x23, 0x45, 0, 40, 17, 7}));
  route.av.hop_limit = 0;
  EXPECT_EQ(route.header(5)[7], 64u);
  EXPECT_EQ(route.service_level, 9u) << "the kind of packet";
}

TEST(Grh, OfRoceOverIpv4IsInTheLastTwentyBytes) {
  SentRoute route(verbs::LinkLayer::Ethernet);
  route.av.sgid_index = 2;
  route.av.dgid = verbs::ipv4_gid(0x0a000002);
  std::vector<unsigned> expected(20, 0);
  // Checksum of the words 455a 003c 0000 4000 0711 0000 0a00 0001 0a00 0002, by hand.
  for (const unsigned byte : {0x45u, 0x5au, 0u,  0x3cu, 0u, 0u, 0x40u, 0u, 7u, 17u,
                              0x5fu, 0x55u, 10u, 0u,    0u, 1u, 10u,   0u, 0u, 2u}) {
    expected.push_back(byte);
  }
  EXPECT_EQ(route.header(5), expected);
  EXPECT_EQ(route.service_level, 10u);
}

TEST(Grh, AnIndexOutsideTheTableHasNoSource) {
  SentRoute route(verbs::LinkLayer::InfiniBand);
  route.av.sgid_index = 200;
  const std::vector<unsigned> header = route.header(8);
  EXPECT_EQ(std::vector<unsigned>(header.begin() + 8, header.begin() + 24),
            std::vector<unsigned>(16, 0));
}

TEST(Grh, TheReceiverReadsWhatTheSenderWrote) {
  for (const auto layer : {verbs::LinkLayer::InfiniBand, verbs::LinkLayer::Ethernet}) {
    for (const std::uint8_t index : {std::uint8_t{0}, std::uint8_t{2}}) {
      SCOPED_TRACE(index);
      SentRoute sent(layer);
      const bool by_ipv4 = index == 2 && layer == verbs::LinkLayer::Ethernet;
      sent.av.sgid_index = index;
      if (by_ipv4) sent.av.dgid = verbs::ipv4_gid(0x0a000002);
      RouteHeader header{};
      (void)describe_route(sent.av, sent.port, 256, false, header);
      const auto came = read_route(header, layer);
      ASSERT_TRUE(came);
      EXPECT_EQ(came->source, verbs::Gid(sent.port.gids[index]));
      EXPECT_EQ(came->destination, sent.av.dgid);
      EXPECT_EQ(came->traffic_class, 0x5a);
      EXPECT_EQ(came->flow_label, by_ipv4 ? 0u : 0x12345u);
      EXPECT_EQ(came->hop_limit, 7);
    }
  }
}

TEST(Grh, OtherBytesAreNoRoute) {
  RouteHeader header{};
  EXPECT_FALSE(read_route(header, verbs::LinkLayer::InfiniBand));
  EXPECT_FALSE(read_route(header, verbs::LinkLayer::Ethernet));
  header[20] = std::byte{0x45};
  EXPECT_FALSE(read_route(header, verbs::LinkLayer::InfiniBand)) << "IPv4 is RoCE's alone";
  EXPECT_TRUE(read_route(header, verbs::LinkLayer::Ethernet));
  header[20] = std::byte{0x46};
  EXPECT_FALSE(read_route(header, verbs::LinkLayer::Ethernet)) << "no packet has IP options";
}

}  // namespace
}  // namespace ib::hca
