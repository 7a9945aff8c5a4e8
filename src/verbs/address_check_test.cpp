// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/address_check.h"

#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <map>

namespace ib::verbs {
namespace {

const Gid kOwn = make_gid(0xfe80000000000000, 1);
const Gid kOwnIp = ipv4_gid(0x7f4d0001);
const Gid kInfiniBandPeer = make_gid(0xfe80000000000000, 2);
const Gid kCabledPeer = make_gid(0xfe80000000000000, 3);
const Gid kEthernetPeer = ipv4_gid(0x7f4d0002);

// Port 1 is InfiniBand, port 2 Ethernet.
class Book : public AddressBook {
 public:
  std::uint32_t ports() const override { return 2; }
  LinkLayer link_layer(std::uint32_t port) const override {
    return port == 2 ? LinkLayer::Ethernet : LinkLayer::InfiniBand;
  }
  std::uint32_t segment(std::uint32_t port) const override { return port - 1; }
  Gid gid(std::uint32_t port, std::uint32_t index) const override {
    if (index == 0) return kOwn;
    return port == 2 && index == 3 ? kOwnIp : Gid{};
  }
  Owner owner_of(const Gid& gid) const override {
    if (gid == kInfiniBandPeer) return {LinkLayer::InfiniBand, 17, 0};
    if (gid == kCabledPeer) return {LinkLayer::InfiniBand, 18, 7};
    return gid == kEthernetPeer ? Owner{LinkLayer::Ethernet, 0, 1} : Owner{};
  }
};

AddressVector by_lid(std::uint16_t lid) {
  AddressVector av;
  av.port = 1;
  av.dlid = lid;
  return av;
}
AddressVector by_gid(std::uint8_t port, const Gid& gid, std::uint8_t index = 0) {
  AddressVector av;
  av.port = port;
  av.is_global = 1;
  av.dgid = gid;
  av.sgid_index = index;
  return av;
}
std::string check(AddressVector av) {
  return check_address(Book{}, av);
}
bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(AddressCheck, AGlobalAddressGetsTheLidOfItsPort) {
  AddressVector av = by_gid(1, kInfiniBandPeer);
  EXPECT_EQ(check_address(Book{}, av), "");
  EXPECT_EQ(av.dlid, 17);
  av.dlid = 9;  // the consumer's value counts
  EXPECT_EQ(check_address(Book{}, av), "");
  EXPECT_EQ(av.dlid, 9);
}

TEST(AddressCheck, EthernetHasNoLids) {
  AddressVector av = by_gid(2, kEthernetPeer, 3);
  av.dlid = 9;
  EXPECT_EQ(check_address(Book{}, av), "");
  EXPECT_EQ(av.dlid, 0);
  av.is_global = 0;
  EXPECT_TRUE(says(check(av), "needs a global address")) << check(av);
}

TEST(AddressCheck, TheLinkLayersAreTwoNetworks) {
  EXPECT_TRUE(says(check(by_gid(1, kEthernetPeer)), "127.77.0.2 is of an Ethernet port"));
  EXPECT_TRUE(says(check(by_gid(2, kInfiniBandPeer)), "fe80::2 is of an InfiniBand port"));
  EXPECT_TRUE(says(check(by_gid(2, kOwnIp)), "no port of this fabric"));
}

TEST(AddressCheck, ACableLeadsToItsOtherEndOnly) {
  EXPECT_TRUE(says(check(by_gid(1, kCabledPeer)), "fe80::3 is of a port that port 1 does not"));
  AddressVector av = by_gid(1, kCabledPeer);
  av.dlid = 18;  // as a LID that nobody has: messages get lost
  EXPECT_EQ(check(av), "");
}

TEST(AddressCheck, TheSourceGidMustBeThere) {
  EXPECT_EQ(check(by_gid(2, kEthernetPeer, 0)), "");
  EXPECT_TRUE(says(check(by_gid(2, kEthernetPeer, 1)), "sgid_index 1"));
  EXPECT_TRUE(says(check(by_gid(1, kInfiniBandPeer, 3)), "sgid_index 3"));
  AddressVector local = by_lid(5);
  local.sgid_index = 9;  // not looked at
  EXPECT_EQ(check(local), "");
}

TEST(AddressCheck, GroupsNeedNoPort) {
  EXPECT_EQ(check(by_gid(1, make_gid(0xff12000000000000, 1))), "");
  EXPECT_EQ(check(by_gid(2, ipv4_gid(0xe1000001))), "");
}

TEST(AddressCheck, RefusesWhatNoPacketCanCarry) {
  EXPECT_TRUE(says(check(by_lid(0)), "LID 0"));
  AddressVector av = by_lid(1);
  av.port = 3;
  EXPECT_TRUE(says(check(av), "port 3"));
  av.port = 0;
  EXPECT_TRUE(says(check(av), "port 0"));
  av = by_lid(1);
  av.sl = 16;
  EXPECT_TRUE(says(check(av), "service level 16"));
}

// As adapters do. UCX sets all 32 bits.
TEST(AddressCheck, OfAFlowLabelTwentyBitsCount) {
  AddressVector av = by_lid(1);
  av.flow_label = 0xfff12345;
  EXPECT_EQ(check_address(Book{}, av), "");
  EXPECT_EQ(av.flow_label, 0x12345u);
}

}  // namespace
}  // namespace ib::verbs
