// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/packets/checksum.h"
#include "ulp/ipoib/packets/icmp.h"
#include "ulp/ipoib/packets/membership_reports.h"
#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

namespace ib::ipoib {
namespace {

TestBytes of_igmp(std::string_view report) {
  TestBytes packet = from_hex("46c0 0000 0000 4000 01 02 0000 0a000001 e0000016 94040000");
  const TestBytes body = from_hex(report);
  packet.insert(packet.end(), body.begin(), body.end());
  put(Bytes(packet), 2, Be16(static_cast<std::uint16_t>(packet.size())));
  return packet;
}
TestBytes of_mld(std::string_view report, bool with_alert = true) {
  TestBytes packet = from_hex(
      "60000000 0000 0001 fe800000000000000000000000000001"
      "ff020000000000000000000000000016");
  if (with_alert) {
    const TestBytes alert = from_hex("3a00050200000100");
    packet.insert(packet.end(), alert.begin(), alert.end());
  } else {
    packet[6] = std::byte{kIcmpv6};
  }
  const TestBytes body = from_hex(report);
  packet.insert(packet.end(), body.begin(), body.end());
  put(Bytes(packet), 4, Be16(static_cast<std::uint16_t>(packet.size() - 40)));
  return packet;
}

// "+" or "-" and the address, one after the other.
std::string changes(const TestBytes& packet) {
  const std::uint16_t type = packet[0] == std::byte{0x46} ? kTypeIpv4 : kTypeIpv6;
  std::string text;
  for (const MembershipChange& change : parse_reports(packet, *parse_ip(type, packet))) {
    const ConstBytes bytes = std::as_bytes(std::span(change.group.bytes));
    text += change.joins ? "+" : "-";
    text += to_hex(is_ipv4_mapped(change.group) ? bytes.subspan(12) : bytes) + " ";
  }
  return text;
}

TEST(IpoibReports, IgmpOfAllVersions) {
  EXPECT_EQ(changes(of_igmp("12000000 efff0001")), "+efff0001 ");
  EXPECT_EQ(changes(of_igmp("16000000 efff0001")), "+efff0001 ");
  EXPECT_EQ(changes(of_igmp("17000000 efff0001")), "-efff0001 ");
  // Version 3: exclude nothing, include nothing, include a source, block a source.
  EXPECT_EQ(changes(of_igmp("22000000 00000004 04000000 efff0001 03000000 efff0002"
                            "01000001 efff0003 0a000009 06000001 efff0004 0a000009")),
            "+efff0001 -efff0002 +efff0003 ");
}

TEST(IpoibReports, MldOfBothVersions) {
  const std::string group = "ff0e0000000000000000000000000101";
  EXPECT_EQ(changes(of_mld("83000000 00000000" + group)), "+" + group + " ");
  EXPECT_EQ(changes(of_mld("84000000 00000000" + group)), "-" + group + " ");
  EXPECT_EQ(changes(of_mld("8f000000 00000002 04000000" + group + "03000000" + group, false)),
            "+" + group + " -" + group + " ");
}

TEST(IpoibReports, WhatIsCutOffIsNotRead) {
  EXPECT_EQ(changes(of_igmp("22000000 0000ffff 04000000 efff0001 0400ffff efff0002")),
            "+efff0001 +efff0002 ");
  EXPECT_EQ(changes(of_igmp("22000000 00000002 04000000 efff0001 040000")), "+efff0001 ");
  EXPECT_EQ(changes(of_igmp("16000000 0a000001")), "");  // no group
  EXPECT_EQ(changes(of_igmp("160000")), "");
  EXPECT_EQ(changes(of_mld("83000000 00000000 ff0e")), "");
  EXPECT_EQ(changes(of_mld("")), "");
}

TEST(IpoibIcmp, TooBigQuotesThePacket) {
  const TestBytes packet = make_packet({}, 5000, false);
  TestBytes out(kMostIcmpBytes);
  out.resize(write_too_big(kTypeIpv4, packet, 2044, out));
  EXPECT_EQ(out.size(), 576u);
  EXPECT_EQ(plain_sum(ConstBytes(out).first(20)), 0xffffu);
  EXPECT_EQ(plain_sum(ConstBytes(out).subspan(20)), 0xffffu);
  const auto header = get<Ipv4Header>(out);
  EXPECT_EQ(header.destination, ipv4(1));
  EXPECT_EQ(header.source, ipv4(2));
  EXPECT_EQ(to_hex(ConstBytes(out).subspan(20, 2)), "0304");
  EXPECT_EQ(get<IcmpHeader>(out, 20).rest, 2044u);
  EXPECT_TRUE(std::equal(out.begin() + 28, out.end(), packet.begin()));
}

TEST(IpoibIcmp, TooBigOfIpv6FillsTheLeastMtu) {
  const Flow flow{true, kUdp};
  TestBytes out(kMostIcmpBytes);
  out.resize(write_too_big(kTypeIpv6, make_packet(flow, 5000, false), 2044, out));
  EXPECT_EQ(out.size(), 1280u);
  EXPECT_TRUE(has_right_checksums(kTypeIpv6, out));
  EXPECT_EQ(to_hex(ConstBytes(out).subspan(40, 2)), "0200");
  EXPECT_EQ(get<IcmpHeader>(out, 40).rest, 2044u);
}

TEST(IpoibIcmp, NoErrorAnswersAnErrorAFragmentOrAGroup) {
  TestBytes out(kMostIcmpBytes);
  TestBytes packet = make_packet({false, kUdp, 1, 2, 100}, 3000, false);
  EXPECT_EQ(write_too_big(kTypeIpv4, packet, 2044, out), 0u);
  packet = make_packet({}, 3000, false);
  packet[9] = std::byte{kIcmp};
  packet[20] = std::byte{3};
  EXPECT_EQ(write_too_big(kTypeIpv4, packet, 2044, out), 0u);
  packet[20] = std::byte{8};  // an echo request
  EXPECT_NE(write_too_big(kTypeIpv4, packet, 2044, out), 0u);
  packet[16] = std::byte{239};
  EXPECT_EQ(write_too_big(kTypeIpv4, packet, 2044, out), 0u);
}

TEST(IpoibIcmp, QueriesAreThoseOfTheLastVersions) {
  TestBytes out(kMostIcmpBytes);
  out.resize(write_igmp_query(out));
  EXPECT_EQ(to_hex(out),
            // Checksums by another program.
            "4600002400000000010244d300000000e000000194040000"
            "110aec7800000000027d0000");
  out.resize(kMostIcmpBytes);
  out.resize(write_mld_query(out));
  EXPECT_EQ(out.size(), 40u + 8 + 28);
  EXPECT_EQ(to_hex(ConstBytes(out).first(8)), "6000000000240001");
  EXPECT_EQ(to_hex(ConstBytes(out).subspan(40, 8)), "3a00050200000100");
  const IpPacket ip{true, kIcmpv6, 48, out.size(), false};
  EXPECT_EQ(plain_sum(ConstBytes(out).subspan(48), plain_pseudo_sum(out, ip)), 0xffffu);
}

}  // namespace
}  // namespace ib::ipoib
