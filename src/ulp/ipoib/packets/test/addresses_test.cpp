// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ulp/ipoib/packets/addresses.h"

#include "ulp/ipoib/packets/test/packets_test.h"

#include <gtest/gtest.h>

#include <set>

namespace ib::ipoib {
namespace {

template <class Address>
std::string text(const Address& address) {
  return to_hex(std::as_bytes(std::span(address.bytes)));
}

Gid gid(std::string_view hex) {
  Gid result;
  const TestBytes bytes = from_hex(hex);
  std::memcpy(result.bytes.data(), bytes.data(), result.bytes.size());
  return result;
}

TEST(IpoibAddresses, AHardwareAddressHasTwentyBytes) {
  const HardwareAddress address{Qpn{0x48}, gid("fe80000000000000 0002c90300000001"), kFlagRc};
  const HardwareAddressBytes bytes = to_bytes(address);
  EXPECT_EQ(to_hex(std::as_bytes(std::span(&bytes, 1))),
            "80000048fe800000000000000002c90300000001");
  EXPECT_EQ(from_bytes(bytes), address);
  EXPECT_TRUE(address.takes_rc());
  EXPECT_TRUE(address.is_same_end({address.qpn, address.gid, 0}));
}

TEST(IpoibAddresses, OnlyRealEndsAreUnicast) {
  const Gid port = gid("fe800000000000000002c90300000001");
  EXPECT_TRUE(is_valid_unicast({Qpn{2}, port, 0}));
  EXPECT_FALSE(is_valid_unicast({Qpn{1}, port, 0}));
  EXPECT_FALSE(is_valid_unicast({kMulticastQpn, port, 0}));
  EXPECT_FALSE(is_valid_unicast({Qpn{2}, Gid{}, 0}));
  EXPECT_FALSE(is_valid_unicast({Qpn{2}, gid("ff12401bffff00000000000000000001"), 0}));
}

TEST(IpoibAddresses, TheBroadcastGroupHasScopeAndFullPkey) {
  EXPECT_EQ(text(GroupMapping(2, Pkey{0xffff}).broadcast()), "ff12401bffff000000000000ffffffff");
  EXPECT_EQ(text(GroupMapping(5, Pkey{0x0001}).broadcast()), "ff15401b8001000000000000ffffffff");
  const HardwareAddressBytes bytes = to_bytes(GroupMapping(2, Pkey{0xffff}).broadcast_address());
  EXPECT_EQ(to_hex(std::as_bytes(std::span(&bytes, 1))),
            "00ffffffff12401bffff000000000000ffffffff");
}

TEST(IpoibAddresses, GroupsOfIpAreMappedAsInRfc4391) {
  const GroupMapping mapping(2, Pkey{0x8001});
  EXPECT_EQ(text(mapping.of(Ipv4Address{{239, 129, 2, 3}})), "ff12401b80010000000000000f810203");
  Ipv6Address all_nodes;
  all_nodes.bytes = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56};
  EXPECT_EQ(text(mapping.of(all_nodes)), "ff12601b8001000000000001ff123456");
  EXPECT_TRUE(mapping.is_ours(mapping.of(all_nodes)));
  EXPECT_TRUE(mapping.is_ours(mapping.broadcast()));
  EXPECT_FALSE(mapping.is_ours(GroupMapping(2, Pkey{0x8002}).broadcast()));
  EXPECT_FALSE(mapping.is_ours(GroupMapping(5, Pkey{0x8001}).broadcast()));
}

TEST(IpoibAddresses, GroupsHaveTheMacsOfEthernet) {
  EXPECT_EQ(text(mac_of(Ipv4Address{{239, 129, 2, 3}})), "01005e010203");
  Ipv6Address group;
  group.bytes = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56};
  EXPECT_EQ(text(mac_of(group)), "3333ff123456");
}

TEST(IpoibAddresses, DerivedMacsAreLocalUnicastAndDifferByAttempt) {
  std::set<MacAddress> seen;
  const std::array<std::uint8_t, 16> identity = {1, 2, 3};
  for (std::uint32_t attempt = 0; attempt < 1000; ++attempt) {
    const MacAddress mac = derive_mac(identity, attempt);
    EXPECT_EQ(mac.bytes[0] & 3, 2);
    EXPECT_NE(mac, kUnknownMac);
    seen.insert(mac);
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(derive_mac(identity, 5), derive_mac(identity, 5));
}

}  // namespace
}  // namespace ib::ipoib
