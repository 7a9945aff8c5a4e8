// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/packets/segmentation.h"

#include "ulp/ipoib/packets/checksum.h"
#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

namespace ib::ipoib {
namespace {

constexpr std::size_t kIp = sizeof(Encapsulation);

struct Segmented {
  std::vector<TestBytes> packets;  // without the encapsulation header
  TestBytes payload;
};

Segmented segment(const Flow& flow, std::size_t payload, std::uint16_t size, std::size_t mtu) {
  const TestBytes message = encapsulated(flow, make_packet(flow, payload, true));
  auto segmenter = Segmenter::create(message, offload_of(flow, size), mtu);
  Segmented result;
  EXPECT_TRUE(segmenter.has_value());
  if (!segmenter) return result;
  const std::size_t headers = (flow.v6 ? 40u : 20u) + (flow.protocol == kTcp ? 20u : 8u);
  while (const auto next = segmenter->next()) {
    TestBytes bytes = joined(*next);
    bytes.erase(bytes.begin(), bytes.begin() + kIp);
    result.payload.insert(result.payload.end(),
                          bytes.begin() + static_cast<std::ptrdiff_t>(headers), bytes.end());
    result.packets.push_back(std::move(bytes));
  }
  return result;
}

TestBytes payload_of(const TestBytes& packet, std::size_t headers) {
  return {packet.begin() + static_cast<std::ptrdiff_t>(headers), packet.end()};
}

TEST(IpoibSegmentation, EverySegmentOfEachKindIsAWholePacketWithRightChecksums) {
  for (const bool v6 : {false, true}) {
    for (const std::uint8_t protocol : {kTcp, kUdp}) {
      for (const std::size_t payload : {1u, 999u, 1000u, 1001u, 5000u, 60'000u}) {
        SCOPED_TRACE(testing::Message() << v6 << " " << int{protocol} << " " << payload);
        const Flow flow{v6, protocol};
        const Segmented segmented = segment(flow, payload, 1000, 2044);
        EXPECT_EQ(segmented.packets.size(), (payload + 999) / 1000);
        const std::size_t headers = (v6 ? 40u : 20u) + (protocol == kTcp ? 20u : 8u);
        EXPECT_EQ(segmented.payload, payload_of(make_packet(flow, payload, true), headers));
        for (const TestBytes& packet : segmented.packets) {
          EXPECT_TRUE(has_right_checksums(v6 ? kTypeIpv6 : kTypeIpv4, packet));
        }
      }
    }
  }
}

TEST(IpoibSegmentation, SequenceNumbersFlagsAndIdsFollow) {
  const Segmented segmented = segment({false, kTcp, 1, 2, kDontFragment, 0x99}, 2500, 1000, 2044);
  ASSERT_EQ(segmented.packets.size(), 3u);
  const std::uint32_t first = 0xffff'fff0;
  const std::uint8_t flags[] = {0x90, 0x10, 0x19};  // CWR in the first, PSH and FIN in the last
  for (unsigned i = 0; i < 3; ++i) {
    const auto tcp = get<TcpHeader>(segmented.packets[i], 20);
    EXPECT_EQ(tcp.sequence, first + 1000 * i);
    EXPECT_EQ(tcp.flags, flags[i]);
    EXPECT_EQ(get<Ipv4Header>(segmented.packets[i]).id, 7 + i);
  }
}

TEST(IpoibSegmentation, ANeighbourWithASmallerMtuGetsSmallerSegments) {
  const Segmented segmented = segment({}, 60'000, 60'000, 2044);
  EXPECT_EQ(segmented.packets.size(), 30u);  // of 2004 bytes
  for (const TestBytes& packet : segmented.packets) EXPECT_LE(packet.size(), 2044u);
}

TEST(IpoibSegmentation, NoSegmentOfUdpIsWithoutAChecksum) {
  const Flow flow{false, kUdp};
  TestBytes packet = make_packet(flow, 2, true);
  put(Bytes(packet), 26, Be16());
  put(Bytes(packet), 28, Be16());
  const std::uint32_t rest =
      plain_sum(ConstBytes(packet).subspan(20), plain_pseudo_sum(packet, *parse_ipv4(packet)));
  put(Bytes(packet), 28, Be16(static_cast<std::uint16_t>(0xffff - rest)));
  const TestBytes message = encapsulated(flow, packet);
  auto segmenter = Segmenter::create(message, offload_of(flow, 2), 2044);
  ASSERT_TRUE(segmenter.has_value());
  EXPECT_EQ(get<UdpHeader>(joined(*segmenter->next()), kIp + 20).checksum, 0xffff);
}

TEST(IpoibSegmentation, HeadersThatDisagreeAreRefused) {
  const Flow flow;
  const TestBytes message = encapsulated(flow, make_packet(flow, 3000, true));
  const Offload right = offload_of(flow, 1000);
  const auto refused = [&](const Offload& offload, const TestBytes& bytes) {
    return Segmenter::create(bytes, offload, 2044).error();
  };
  Offload wrong = right;
  wrong.segmentation = Segmentation::Tcp6;
  EXPECT_EQ(refused(wrong, message), Status::Malformed);
  wrong = right;
  wrong.segmentation = Segmentation::Udp;
  EXPECT_EQ(refused(wrong, message), Status::Malformed);
  wrong = right;
  wrong.checksum_start = 24;
  EXPECT_EQ(refused(wrong, message), Status::Malformed);
  wrong = right;
  wrong.checksum_offset = 6;
  EXPECT_EQ(refused(wrong, message), Status::Malformed);
  wrong = right;
  wrong.needs_checksum = false;
  EXPECT_EQ(refused(wrong, message), Status::Malformed);
  TestBytes bad = message;
  bad[kIp + 20 + 12] = std::byte{0x40};  // a TCP header of 16 bytes
  EXPECT_EQ(refused(right, bad), Status::Malformed);
  bad[kIp + 20 + 12] = std::byte{0xf0};
  EXPECT_EQ(refused(right, bad), Status::Ok);  // options; the payload is shorter
  bad = message;
  bad.resize(kIp + 50);
  EXPECT_EQ(refused(right, bad), Status::Malformed);
  EXPECT_EQ(Segmenter::create(message, right, 40).error(), Status::LimitExceeded);
}

TEST(IpoibFragmentation, FragmentsAddUpToThePacket) {
  const Flow flow{false, kUdp, 1, 2, 0};
  const TestBytes packet = make_packet(flow, 5000, false);
  const TestBytes message = encapsulated(flow, packet);
  auto fragments = Fragmenter::create(message, 2044, false);
  ASSERT_TRUE(fragments.has_value());
  TestBytes payload;
  std::vector<std::uint16_t> fields;
  while (const auto next = fragments->next()) {
    TestBytes bytes = joined(*next);
    const ConstBytes fragment = ConstBytes(bytes).subspan(kIp);
    EXPECT_LE(fragment.size(), 2044u);
    EXPECT_TRUE(has_right_checksums(kTypeIpv4, fragment));
    const auto header = get<Ipv4Header>(fragment);
    EXPECT_EQ((header.fragment & kFragmentOffset) * 8u, payload.size());
    fields.push_back(header.fragment & 0xe000);
    payload.insert(payload.end(), fragment.begin() + 20, fragment.end());
  }
  EXPECT_EQ(fields, (std::vector<std::uint16_t>{0x2000, 0x2000, 0}));
  EXPECT_EQ(payload, payload_of(packet, 20));
}

TEST(IpoibFragmentation, AFragmentKeepsItsPlaceInTheWhole) {
  const Flow flow{false, kUdp, 1, 2, kMoreFragments | 100};
  const TestBytes message = encapsulated(flow, make_packet(flow, 2992, false));
  auto fragments = Fragmenter::create(message, 2044, false);
  ASSERT_TRUE(fragments.has_value());
  const auto first = get<Ipv4Header>(joined(*fragments->next()), kIp);
  EXPECT_EQ(first.fragment, kMoreFragments | 100);
  const auto second = get<Ipv4Header>(joined(*fragments->next()), kIp);
  EXPECT_EQ(second.fragment, kMoreFragments | (100 + 2024 / 8));
  EXPECT_FALSE(fragments->next().has_value());
}

TEST(IpoibFragmentation, OnlyOptionsToBeCopiedAreInLaterFragments) {
  // Router alert (to be copied), then record route (not), then padding: 12 bytes.
  TestBytes packet = from_hex(
      "48000000 0007 0000 40 11 0000 0a000001 0a000002"
      "94040000 0707 04 00000000 00");
  packet.resize(32 + 4000);
  put(Bytes(packet), 2, Be16(static_cast<std::uint16_t>(packet.size())));
  const TestBytes message = encapsulated({}, packet);
  auto fragments = Fragmenter::create(message, 2044, false);
  ASSERT_TRUE(fragments.has_value());
  EXPECT_EQ(get<Ipv4Header>(joined(*fragments->next()), kIp).version_length, 0x48);
  const TestBytes second = joined(*fragments->next());
  EXPECT_EQ(get<Ipv4Header>(second, kIp).version_length, 0x46);
  EXPECT_EQ(to_hex(ConstBytes(second).subspan(kIp + 20, 4)), "94040000");
  EXPECT_EQ(plain_sum(ConstBytes(second).subspan(kIp, 24)), 0xffffu);
}

TEST(IpoibFragmentation, DontFragmentIsObeyedUnlessIgnored) {
  const Flow flow{false, kUdp};
  const TestBytes message = encapsulated(flow, make_packet(flow, 5000, false));
  EXPECT_EQ(Fragmenter::create(message, 2044, false).error(), Status::NotSupported);
  auto fragments = Fragmenter::create(message, 2044, true);
  ASSERT_TRUE(fragments.has_value());
  EXPECT_EQ(get<Ipv4Header>(joined(*fragments->next()), kIp).fragment, kMoreFragments);
  const TestBytes v6 = encapsulated({true, kUdp}, make_packet({true, kUdp}, 5000, false));
  EXPECT_EQ(Fragmenter::create(v6, 2044, true).error(), Status::NotSupported);
}

TEST(IpoibChecksum, APartialChecksumIsCompleted) {
  for (const bool v6 : {false, true}) {
    for (const std::uint8_t protocol : {kTcp, kUdp}) {
      for (const std::size_t payload : {0u, 1u, 2u, 3u, 1001u}) {
        const Flow flow{v6, protocol};
        TestBytes packet = make_packet(flow, payload, true);
        complete_checksum(packet, offload_of(flow, 0));
        EXPECT_EQ(packet, make_packet(flow, payload, false));
      }
    }
  }
}

TEST(IpoibChecksum, AZeroSumOfUdpIsWrittenAsOnes) {
  const Flow flow{false, kUdp};
  TestBytes packet = make_packet(flow, 2, true);
  // Two bytes of payload that make the sum 0xffff.
  const std::uint32_t rest = plain_sum(ConstBytes(packet).subspan(20, 8));
  put(Bytes(packet), 28, Be16(static_cast<std::uint16_t>(0xffff - rest)));
  complete_checksum(packet, offload_of(flow, 0));
  EXPECT_EQ(get<UdpHeader>(packet, 20).checksum, 0xffff);
}

TEST(IpoibVirtioHeader, ItsMeaningCountsFromTheIpHeader) {
  VirtioHeader header;
  header.flags = VirtioHeader::kNeedsChecksum;
  header.gso_type = VirtioHeader::kGsoTcp4 | VirtioHeader::kGsoEcn;
  header.gso_size = 1460;
  header.checksum_start = 34;
  header.checksum_offset = 16;
  const auto offload = from_virtio(header, 3000);
  ASSERT_TRUE(offload.has_value());
  Offload expected = offload_of({}, 1460);
  expected.ecn = true;
  EXPECT_EQ(*offload, expected);
  const VirtioHeader back = to_virtio(*offload);
  EXPECT_EQ(back.gso_type, header.gso_type);
  EXPECT_EQ(back.checksum_start, 34);
  EXPECT_EQ(back.header_length, 54);
}

// The kernel refuses a frame that is shorter than the hint: a whole packet of UDP may be.
TEST(IpoibVirtioHeader, AWholePacketGivesNoHint) {
  VirtioHeader header;
  header.flags = VirtioHeader::kNeedsChecksum;
  header.checksum_start = 34;
  header.checksum_offset = 6;
  const auto offload = from_virtio(header, 32);
  ASSERT_TRUE(offload.has_value());
  const VirtioHeader back = to_virtio(*offload);
  EXPECT_EQ(back.checksum_start, 34);
  EXPECT_EQ(back.header_length, 0);
}

TEST(IpoibVirtioHeader, WhatPointsOutOfThePacketIsRefused) {
  VirtioHeader header;
  header.flags = VirtioHeader::kNeedsChecksum;
  header.checksum_start = 34;
  header.checksum_offset = 16;
  EXPECT_TRUE(from_virtio(header, 38).has_value());
  EXPECT_FALSE(from_virtio(header, 37).has_value());
  header.checksum_start = 13;
  EXPECT_FALSE(from_virtio(header, 1000).has_value());
  header.checksum_start = 33;  // in the IP header
  EXPECT_FALSE(from_virtio(header, 1000).has_value());
  header.checksum_start = 34;
  header.gso_type = 3;  // fragments of UDP
  EXPECT_FALSE(from_virtio(header, 1000).has_value());
  header.gso_type = VirtioHeader::kGsoUdp;
  EXPECT_FALSE(from_virtio(header, 1000).has_value());  // of size 0
}

}  // namespace
}  // namespace ib::ipoib
