// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/packets/dhcp.h"

#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

namespace ib::ipoib {
namespace {

Identity own_identity() {
  Identity own;
  own.mac = {{0x0a, 0x11, 0x22, 0x33, 0x44, 0x55}};
  own.port_guid = 0x0002c90300000001;
  own.pkey = Pkey{0x8001};
  return own;
}

// A message with these options, as a packet with right checksums.
TestBytes make_message(bool from_client, std::string_view hardware, std::string_view options,
                       std::uint32_t transaction = 0x11223344) {
  TestBytes boot;
  boot.push_back(std::byte{from_client ? std::uint8_t{1} : std::uint8_t{2}});
  const TestBytes start = from_hex(hardware);  // type, length
  boot.insert(boot.end(), start.begin(), start.begin() + 2);
  boot.resize(4);
  append(boot, Be32(transaction));
  boot.resize(28);
  boot.insert(boot.end(), start.begin() + 2, start.end());
  boot.resize(236);
  append(boot, Be32(0x63825363u));
  const TestBytes more = from_hex(options);
  boot.insert(boot.end(), more.begin(), more.end());
  TestBytes packet = make_packet({false, kUdp, 1, 2, 0}, boot.size(), false);
  std::copy(boot.begin(), boot.end(), packet.begin() + 28);
  put(Bytes(packet), 20, Be16(std::uint16_t{from_client ? std::uint16_t{68} : std::uint16_t{67}}));
  put(Bytes(packet), 22, Be16(std::uint16_t{from_client ? std::uint16_t{67} : std::uint16_t{68}}));
  put(Bytes(packet), 26, Be16());
  const IpPacket ip = *parse_ipv4(packet);
  const std::uint32_t sum = plain_sum(ConstBytes(packet).subspan(20), plain_pseudo_sum(packet, ip));
  put(Bytes(packet), 26, Be16(static_cast<std::uint16_t>(~sum)));
  return packet;
}

constexpr std::string_view kOfMac = "0106 0a1122334455";
constexpr std::string_view kOfInfiniband = "2000";

std::string identifier() {
  return to_hex(from_hex("3d11 ff 00008001 0003 0020 0002c90300000001"));
}

struct Translated {
  Status status = Status::Ok;
  TestBytes packet;
  std::string hardware() const { return to_hex(ConstBytes(packet).subspan(29, 2)); }
  std::string flags() const { return to_hex(ConstBytes(packet).subspan(38, 2)); }
  std::string address() const { return to_hex(ConstBytes(packet).subspan(56, 16)); }
  std::string options() const { return to_hex(ConstBytes(packet).subspan(268)); }
};

Translated finish(Result<std::size_t> length, TestBytes out) {
  if (!length) return {length.error(), {}};
  out.resize(*length);
  EXPECT_TRUE(has_right_checksums(kTypeIpv4, out));
  return {Status::Ok, out};
}
Translated to_fabric(Dhcp& dhcp, const TestBytes& packet) {
  TestBytes out(2048);
  const auto length = dhcp.to_fabric(packet, *parse_ipv4(packet), own_identity(), out);
  return finish(length, out);
}
Translated to_ethernet(const Dhcp& dhcp, const TestBytes& packet) {
  TestBytes out(2048);
  const MacAddress sender{{0x0a, 9, 9, 9, 9, 9}};
  const auto length = dhcp.to_ethernet(packet, *parse_ipv4(packet), own_identity(), sender, out);
  return finish(length, out);
}

TEST(IpoibDhcp, AClientLosesItsMacAndGetsAnIdentifier) {
  Dhcp dhcp;
  const Translated sent = to_fabric(dhcp, make_message(true, kOfMac, "350101 3204 0a000009 ff"));
  EXPECT_EQ(sent.hardware(), "2000");
  EXPECT_EQ(sent.flags(), "8000");
  EXPECT_EQ(sent.address(), std::string(32, '0'));
  EXPECT_EQ(sent.options(), "35010132040a000009" + identifier() + "ff");
}

TEST(IpoibDhcp, AnIdentifierOfTheMacIsReplacedAndComesBack) {
  Dhcp dhcp;
  const Translated sent =
      to_fabric(dhcp, make_message(true, kOfMac, "3d07010a1122334455 350101 ff"));
  EXPECT_EQ(sent.options(), "350101" + identifier() + "ff");
  const Translated got = to_ethernet(
      dhcp, make_message(false, kOfInfiniband, "350102" + identifier() + "3604 0a000001 ff"));
  EXPECT_EQ(got.hardware(), "0106");
  EXPECT_EQ(got.address(), "0a1122334455" + std::string(20, '0'));
  EXPECT_EQ(got.options(),
            "350102"
            "3d07010a1122334455" +
                std::string(20, '0') + "36040a000001ff");
}

TEST(IpoibDhcp, AnIdentifierThatTheClientNeverHadIsTakenOutOfTheAnswer) {
  Dhcp dhcp;
  to_fabric(dhcp, make_message(true, kOfMac, "350101 ff"));
  const Translated got =
      to_ethernet(dhcp, make_message(false, kOfInfiniband, "350102" + identifier() + "ff"));
  EXPECT_EQ(got.options(), "350102" + std::string(38, '0') + "ff");
}

TEST(IpoibDhcp, AnIdentifierOfItsOwnStays) {
  Dhcp dhcp;
  const Translated sent = to_fabric(dhcp, make_message(true, kOfMac, "3d04ff010203 350101 ff"));
  EXPECT_EQ(sent.options(), "3d04ff010203350101ff");
}

TEST(IpoibDhcp, AnAnswerToAnotherNodeIsNotForTheClientHere) {
  Dhcp dhcp;
  to_fabric(dhcp, make_message(true, kOfMac, "350101 ff"));
  const Translated got =
      to_ethernet(dhcp, make_message(false, kOfInfiniband, "350102 ff", 0x55667788));
  EXPECT_EQ(got.hardware(), "0106");
  EXPECT_EQ(got.address(), std::string(32, '0'));
}

TEST(IpoibDhcp, AServerSeesTheMacOfTheSenderAndAnswersWithoutIt) {
  Dhcp dhcp;
  const Translated got =
      to_ethernet(dhcp, make_message(true, kOfInfiniband, "350101" + identifier() + "ff"));
  EXPECT_EQ(got.hardware(), "0106");
  EXPECT_EQ(got.address(), "0a0909090909" + std::string(20, '0'));
  EXPECT_EQ(got.options(), "350101" + identifier() + "ff");
  const Translated answer =
      to_fabric(dhcp, make_message(false, "0106 0a0909090909", "350102" + identifier() + "ff"));
  EXPECT_EQ(answer.hardware(), "2000");
  EXPECT_EQ(answer.address(), std::string(32, '0'));
  EXPECT_EQ(answer.flags(), "0000");
  EXPECT_EQ(answer.options(), "350102" + identifier() + "ff");
}

TEST(IpoibDhcp, OnlyMessagesBetweenClientsAndServersAreTouched) {
  TestBytes packet = make_message(true, kOfMac, "350101 ff");
  EXPECT_EQ(Dhcp::role(packet, *parse_ipv4(packet)), Dhcp::Role::FromClient);
  put(Bytes(packet), 20, Be16(std::uint16_t{67}));  // of a relay
  EXPECT_EQ(Dhcp::role(packet, *parse_ipv4(packet)), Dhcp::Role::None);
  packet = make_message(false, kOfMac, "350102 ff");
  EXPECT_EQ(Dhcp::role(packet, *parse_ipv4(packet)), Dhcp::Role::FromServer);
  packet[28] = std::byte{1};
  EXPECT_EQ(Dhcp::role(packet, *parse_ipv4(packet)), Dhcp::Role::None);
}

TEST(IpoibDhcp, WrongOptionsAndChecksumsAreRefused) {
  Dhcp dhcp;
  EXPECT_EQ(to_fabric(dhcp, make_message(true, kOfMac, "3509 01")).status, Status::Malformed);
  EXPECT_EQ(to_fabric(dhcp, make_message(true, kOfMac, "35")).status, Status::Malformed);
  TestBytes packet = make_message(false, kOfInfiniband, "350102 ff");
  packet.back() = std::byte{0xfe};
  EXPECT_EQ(to_ethernet(dhcp, packet).status, Status::IoError);
}

}  // namespace
}  // namespace ib::ipoib
