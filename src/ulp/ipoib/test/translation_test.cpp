// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ARP and neighbour discovery, whose bytes were made by another program, and the table that they
// fill.
#include "ulp/ipoib/arp.h"
#include "ulp/ipoib/neighbour_discovery.h"
#include "ulp/ipoib/neighbours.h"
#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::ipoib {
namespace {

using namespace std::chrono_literals;

Gid port_gid(std::uint8_t number) {
  Gid gid;
  gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, number};
  return gid;
}

HardwareAddress address_of(std::uint8_t number, std::uint32_t qpn) {
  return {Qpn{qpn}, port_gid(number), kFlagRc};
}

Identity identity() {
  Identity own;
  own.mac = {{0x0a, 0x11, 0x22, 0x33, 0x44, 0x55}};
  own.address = address_of(1, 0x48);
  own.groups = GroupMapping(2, Pkey{0xffff});
  return own;
}

struct Table : testing::Test {
  Identity own = identity();
  Neighbours neighbours{16, own.mac, 1};
  Instant now{};

  MacAddress learn(std::uint8_t number, std::uint32_t qpn, const ClaimedAddress& claimed = {}) {
    return neighbours.learn(address_of(number, qpn), claimed, NeighbourRow::Source::Arp, now).mac;
  }
  std::string mac_text(const MacAddress& mac) {
    return to_hex(std::as_bytes(std::span(mac.bytes)));
  }
};

using IpoibArp = Table;
using IpoibDiscovery = Table;
using IpoibNeighbours = Table;

template <class Arp>
std::string text(const Arp& arp) {
  return to_hex(std::as_bytes(std::span(&arp, 1)));
}

TEST_F(IpoibArp, ARequestOfTheKernelCarriesTheHardwareAddress) {
  const auto arp =
      arp_to_fabric(from_hex("0001 0800 06 04 0001 0a1122334455 0a000001 000000000000 0a000002"),
                    own, neighbours);
  ASSERT_TRUE(arp.has_value());
  EXPECT_EQ(text(*arp),
            "00200800140400018000"
            "0048fe800000000000000002c903000000010a000001"
            "00000000000000000000000000000000000000000a000002");
}

TEST_F(IpoibArp, AReplyOfTheKernelNamesTheNeighbour) {
  const MacAddress mac = learn(2, 0x99);
  const auto arp = arp_to_fabric(
      from_hex("0001 0800 06 04 0002 0a1122334455 0a000001" + mac_text(mac) + "0a000002"), own,
      neighbours);
  ASSERT_TRUE(arp.has_value());
  EXPECT_EQ(text(*arp).substr(64), "80000099fe800000000000000002c903000000020a000002");
  const auto unknown =
      arp_to_fabric(from_hex("0001 0800 06 04 0002 0a1122334455 0a000001 0a0101010101 0a000002"),
                    own, neighbours);
  EXPECT_EQ(unknown.error(), Status::NotFound);
}

TEST_F(IpoibArp, ForeignSendersAndOtherProtocolsAreRefused) {
  const auto refused = [&](std::string_view hex) {
    return arp_to_fabric(from_hex(hex), own, neighbours).error();
  };
  EXPECT_EQ(refused("0001080006040001 0a1122334456 0a000001 000000000000 0a000002"),
            Status::AccessDenied);
  EXPECT_EQ(refused("0001080006040003 0a1122334455 0a000001 000000000000 0a000002"),
            Status::Malformed);  // RARP
  EXPECT_EQ(refused("0020080006040001 0a1122334455 0a000001 000000000000 0a000002"),
            Status::Malformed);
  EXPECT_EQ(refused("0001080006040001 0a1122334455 0a000001 000000000000 0a0000"),
            Status::Malformed);
}

TEST_F(IpoibArp, AReplyOfTheFabricIsLearnt) {
  const auto received = arp_to_ethernet(
      from_hex("0020 0800 14 04 0002 80000099fe800000000000000002c90300000002 0a000002"
               "80000048fe800000000000000002c90300000001 0a000001"),
      own, neighbours, now);
  ASSERT_TRUE(received.has_value());
  const Neighbour* const neighbour = neighbours.peek(address_of(2, 0x99));
  ASSERT_NE(neighbour, nullptr);
  EXPECT_EQ(text(received->arp), "0001080006040002" + mac_text(neighbour->mac) +
                                     "0a000002"
                                     "0a1122334455"
                                     "0a000001");
  EXPECT_EQ(neighbour->ipv4, (Ipv4Address{{10, 0, 0, 2}}));
  EXPECT_TRUE(neighbour->address.takes_rc());
}

TEST_F(IpoibArp, NoNodeMaySpeakAsThisInterfaceOrAsAGroup) {
  const auto refused = [&](std::string_view sender) {
    return arp_to_ethernet(from_hex("0020080014040001" + std::string(sender) + "0a000002" +
                                    std::string(40, '0') + "0a000001"),
                           own, neighbours, now)
        .error();
  };
  EXPECT_EQ(refused("00000048fe800000000000000002c90300000001"), Status::AccessDenied);
  EXPECT_EQ(refused("00ffffffff12401bffff000000000000ffffffff"), Status::Malformed);
  EXPECT_EQ(refused("0000004800000000000000000000000000000000"), Status::Malformed);
  EXPECT_TRUE(neighbours.all().empty());
}

// A neighbour solicitation with the link-layer address and a nonce.
constexpr std::string_view kSolicitation6 =
    "6000000000283afffe800000000000000002c90300000001ff0200000000000000000001ff000002870062de0000"
    "0000fe800000000000000002c9030000000201010a11223344550e01010203040506";
constexpr std::string_view kSolicitation20 =
    "6000000000383afffe800000000000000002c90300000001ff0200000000000000000001ff00000287008b950000"
    "0000fe800000000000000002c903000000020103000080000048fe800000000000000002c903000000010e010102"
    "03040506";

TEST_F(IpoibDiscovery, AnOptionGrowsToTwentyBytes) {
  const TestBytes packet = from_hex(kSolicitation6);
  const auto ip = parse_ipv6(packet);
  ASSERT_TRUE(is_neighbour_discovery(packet, *ip));
  TestBytes out(256);
  const auto length = discovery_to_fabric(packet, *ip, own, neighbours, out);
  ASSERT_TRUE(length.has_value());
  out.resize(*length);
  EXPECT_EQ(to_hex(out), kSolicitation20);
}

TEST_F(IpoibDiscovery, AnOptionShrinksAndItsOwnerIsLearnt) {
  // The solicitation of another node: the MAC is the one of the table.
  own.address = address_of(7, 0x48);
  own.mac = {{0x0a, 7}};
  const TestBytes packet = from_hex(kSolicitation20);
  TestBytes out(256);
  const auto received =
      discovery_to_ethernet(packet, *parse_ipv6(packet), own, neighbours, now, out);
  ASSERT_TRUE(received.has_value());
  out.resize(received->length);
  EXPECT_EQ(out.size(), from_hex(kSolicitation6).size());
  EXPECT_TRUE(has_right_checksums(kTypeIpv6, out));
  const Neighbour* const neighbour = neighbours.peek(address_of(1, 0x48));
  ASSERT_NE(neighbour, nullptr);
  EXPECT_EQ(to_hex(ConstBytes(out).subspan(64, 16)),
            "0101" + mac_text(neighbour->mac) + "0e01010203040506");
  ASSERT_TRUE(neighbour->ipv6.has_value());
  EXPECT_EQ(neighbour->ipv6->bytes, port_gid(1).bytes);
}

TEST_F(IpoibDiscovery, WrongPacketsTeachNothing) {
  own.address = address_of(7, 0x48);
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    TestBytes packet = from_hex(kSolicitation20);
    packet[at] = std::byte{value};
    TestBytes out(256);
    return discovery_to_ethernet(packet, *parse_ipv6(packet), own, neighbours, now, out).error();
  };
  EXPECT_EQ(refused(7, 254), Status::Malformed);  // came through a router
  EXPECT_EQ(refused(95, 7), Status::IoError);     // checksum
  EXPECT_TRUE(neighbours.all().empty());
}

TEST_F(IpoibDiscovery, OptionsAreInBounds) {
  const auto refused = [&](std::string_view options) {
    TestBytes packet = from_hex(kSolicitation6);
    packet.resize(64);
    const TestBytes more = from_hex(options);
    packet.insert(packet.end(), more.begin(), more.end());
    put(Bytes(packet), 4, Be16(static_cast<std::uint16_t>(packet.size() - 40)));
    TestBytes out(128);
    return discovery_to_fabric(packet, *parse_ipv6(packet), own, neighbours, out).error();
  };
  EXPECT_EQ(refused(""), Status::Ok);
  EXPECT_EQ(refused("01010a1122334455"), Status::Ok);
  EXPECT_EQ(refused("01000a1122334455"), Status::Malformed);  // length 0
  EXPECT_EQ(refused("01020a1122334455"), Status::Malformed);  // beyond the end
  EXPECT_EQ(refused("01"), Status::Malformed);
  EXPECT_EQ(refused("01020a11223344550000000000000000"), Status::Malformed);  // not of Ethernet
  EXPECT_EQ(refused("01010a1122334456"), Status::AccessDenied);
  EXPECT_EQ(refused("01010a112233445501010a112233445501010a1122334455"),
            Status::Malformed);  // room
}

TEST_F(IpoibDiscovery, ARedirectNamesAnotherNeighbour) {
  const MacAddress mac = learn(2, 0x99);
  TestBytes packet = from_hex(kSolicitation6);
  packet.resize(80);
  const TestBytes option = from_hex("0201" + mac_text(mac));
  packet.insert(packet.end(), option.begin(), option.end());
  packet[40] = std::byte{137};
  put(Bytes(packet), 4, Be16(std::uint16_t{48}));
  TestBytes out(256);
  auto length = discovery_to_fabric(packet, *parse_ipv6(packet), own, neighbours, out);
  ASSERT_TRUE(length.has_value());
  EXPECT_EQ(to_hex(ConstBytes(out).subspan(80, 24)),
            "0203000080000099fe800000000000000002c90300000002");
  packet[83] = ~packet[83];
  length = discovery_to_fabric(packet, *parse_ipv6(packet), own, neighbours, out);
  EXPECT_EQ(length.error(), Status::NotFound);
}

TEST_F(IpoibDiscovery, TheGroupOfATargetIsTheSolicitedNodeGroup) {
  const TestBytes packet = from_hex(kSolicitation6);
  const auto target = solicited_target(packet, *parse_ipv6(packet));
  ASSERT_TRUE(target.has_value());
  const Ipv6Address group = solicited_node_group(*target);
  EXPECT_EQ(to_hex(std::as_bytes(std::span(group.bytes))), "ff0200000000000000000001ff000002");
}

TEST_F(IpoibNeighbours, EachHasAMacOfItsOwn) {
  Neighbours many(5000, own.mac, 1);
  std::set<MacAddress> macs;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    // Few GIDs: the MACs collide.
    macs.insert(many.learn(address_of(static_cast<std::uint8_t>(i % 5), 100 + i), {},
                           NeighbourRow::Source::Packet, now)
                    .mac);
  }
  EXPECT_EQ(macs.size(), 4000u);
  EXPECT_EQ(many.all().size(), 4000u);
  for (const Neighbour& neighbour : many.all()) {
    EXPECT_EQ(many.peek(neighbour.mac), &neighbour);
    EXPECT_EQ(many.peek(neighbour.address), &neighbour);
  }
}

TEST_F(IpoibNeighbours, ARestartedNeighbourKeepsItsMac) {
  const Ipv4Address ip{{10, 0, 0, 2}};
  const MacAddress mac = learn(2, 100, ip);
  const LearntNeighbour learnt =
      neighbours.learn(address_of(2, 101), ip, NeighbourRow::Source::Arp, now);
  EXPECT_EQ(learnt.mac, mac);
  EXPECT_EQ(learnt.gone, address_of(2, 100));
  EXPECT_EQ(neighbours.peek(address_of(2, 100)), nullptr);
  EXPECT_EQ(neighbours.all().size(), 1u);
}

TEST_F(IpoibNeighbours, ARestartThatAPacketShowedFirstEndsTheOldEntry) {
  const Ipv4Address ip{{10, 0, 0, 2}};
  const MacAddress mac = learn(2, 100, ip);
  EXPECT_NE(learn(2, 101), mac);
  const LearntNeighbour learnt =
      neighbours.learn(address_of(2, 101), ip, NeighbourRow::Source::Arp, now);
  EXPECT_EQ(learnt.mac, mac);
  EXPECT_EQ(neighbours.peek(mac), neighbours.peek(address_of(2, 101)));
  EXPECT_EQ(learnt.gone, address_of(2, 100));
  EXPECT_EQ(neighbours.all().size(), 1u);
}

TEST_F(IpoibNeighbours, TwoInterfacesOfAPortAreTwoNeighbours) {
  learn(2, 100, Ipv4Address{{10, 0, 0, 2}});
  learn(2, 101, Ipv4Address{{10, 0, 0, 3}});
  EXPECT_EQ(neighbours.all().size(), 2u);
}

TEST_F(IpoibNeighbours, AnAddressThatMovesToAnotherPortGetsAnotherMac) {
  const Ipv4Address ip{{10, 0, 0, 2}};
  const MacAddress mac = learn(2, 100, ip);
  EXPECT_NE(learn(3, 100, ip), mac);
}

TEST_F(IpoibNeighbours, AFullTableKeepsThoseInUse) {
  const MacAddress used = learn(200, 100);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    now += 1ms;
    neighbours.find(used, now);
    learn(static_cast<std::uint8_t>(i % 100), 1000 + i);
    EXPECT_LE(neighbours.all().size(), 16u);
  }
  EXPECT_NE(neighbours.peek(used), nullptr);
  EXPECT_EQ(neighbours.evicted(), 1000u - 15);
}

TEST_F(IpoibNeighbours, UnusedOnesAreTakenOut) {
  learn(2, 100);
  now += 10s;
  const MacAddress used = learn(3, 100);
  EXPECT_EQ(neighbours.take_unused(now - 5s), address_of(2, 100));
  EXPECT_EQ(neighbours.take_unused(now - 5s), std::nullopt);
  EXPECT_NE(neighbours.peek(used), nullptr);
}

}  // namespace
}  // namespace ib::ipoib
