// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/port_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint32_t kNode = 0;

class PortTableTest : public testing::Test {
 protected:
  static PortOwner owner(std::uint32_t id, const char* ip, std::uint16_t port, bool reuse = false) {
    PortOwner owner;
    owner.id = id;
    owner.address = any_address(Family::Ipv4, port);
    if (*ip != '*')
      owner.address.ip = verbs::ipv4_gid(0x0a000000u + static_cast<unsigned>(*ip - '0'));
    owner.af_only = true;
    owner.reuse = reuse;
    return owner;
  }
  Error bind(PortOwner owner, PortSpace space = PortSpace::Tcp, std::uint32_t node = kNode) {
    return table.bind(node, space, owner);
  }
  Error listen(std::uint32_t id, std::uint16_t port) {
    return table.listen(kNode, PortSpace::Tcp, port, id);
  }
  std::uint32_t listener(const char* ip, std::uint16_t port) {
    const PortOwner* found = table.find_listener(kNode, PortSpace::Tcp, owner(0, ip, port).address);
    return found == nullptr ? 0 : found->id;
  }

  std::mt19937 random{1};
  PortTable table{{}, [this] { return static_cast<std::uint32_t>(random()); }};
};

TEST_F(PortTableTest, AnAddressAndPortHaveOneOwner) {
  EXPECT_EQ(bind(owner(1, "1", 80)), Error::None);
  EXPECT_EQ(bind(owner(2, "1", 80)), Error::AddressInUse);
  EXPECT_EQ(bind(owner(3, "2", 80)), Error::None) << "another address";
  EXPECT_EQ(bind(owner(4, "*", 80)), Error::NoAddress) << "a wildcard takes all addresses";
  EXPECT_EQ(bind(owner(5, "1", 80), PortSpace::Udp), Error::None) << "another port space";
  EXPECT_EQ(bind(owner(6, "1", 80), PortSpace::Tcp, 7), Error::None) << "another node";
}

TEST_F(PortTableTest, BothMustAllowReuseAndOneMayListen) {
  EXPECT_EQ(bind(owner(1, "1", 80, true)), Error::None);
  EXPECT_EQ(bind(owner(2, "1", 80)), Error::AddressInUse);
  EXPECT_EQ(bind(owner(2, "1", 80, true)), Error::None);
  EXPECT_EQ(listen(1, 80), Error::AddressInUse) << "another one has the same address";
  table.release(kNode, PortSpace::Tcp, 80, 2);
  EXPECT_EQ(listen(1, 80), Error::None);
  EXPECT_EQ(bind(owner(3, "1", 80, true)), Error::AddressInUse) << "a listener shares no more";
}

TEST_F(PortTableTest, ALoopbackAddressIsAWildcard) {
  PortOwner loopback = owner(1, "*", 80);
  loopback.address.ip = verbs::ipv4_gid(0x7f000001);
  EXPECT_EQ(bind(loopback), Error::None);
  EXPECT_EQ(bind(owner(2, "1", 80)), Error::NoAddress);
  EXPECT_EQ(listen(1, 80), Error::None);
  EXPECT_EQ(listener("1", 80), 1u);
  EXPECT_EQ(listener("2", 80), 1u);
}

TEST_F(PortTableTest, WildcardsOfTwoFamiliesShareIfBothAreForTheirsOnly) {
  EXPECT_EQ(bind(owner(1, "*", 80)), Error::None);
  PortOwner six;
  six.id = 2;
  six.address = any_address(Family::Ipv6, 80);
  EXPECT_EQ(bind(six), Error::NoAddress);
  six.af_only = true;
  EXPECT_EQ(bind(six), Error::None);
}

TEST_F(PortTableTest, AListenerOfTheAddressComesBeforeAWildcard) {
  EXPECT_EQ(bind(owner(1, "*", 80, true)), Error::None);
  EXPECT_EQ(listen(1, 80), Error::None);
  EXPECT_EQ(listener("3", 80), 1u);
  EXPECT_EQ(listener("3", 81), 0u);
  EXPECT_EQ(bind(owner(2, "3", 81)), Error::None);
  EXPECT_EQ(listener("3", 81), 0u) << "it does not listen yet";
  EXPECT_EQ(listen(2, 81), Error::None);
  EXPECT_EQ(listener("3", 81), 2u);
  EXPECT_EQ(listener("4", 81), 0u);
  EXPECT_EQ(table.listeners(kNode, PortSpace::Tcp, 8).size(), 2u);
  EXPECT_EQ(table.listeners(kNode, PortSpace::Tcp, 1).size(), 1u);
  EXPECT_TRUE(table.listeners(kNode + 1, PortSpace::Tcp, 8).empty());
}

TEST_F(PortTableTest, AWildcardOfIpv6GetsIpv4TooUnlessToldNotTo) {
  PortOwner six;
  six.id = 2;
  six.address = any_address(Family::Ipv6, 80);
  EXPECT_EQ(bind(six), Error::None);
  EXPECT_EQ(listen(2, 80), Error::None);
  EXPECT_EQ(listener("3", 80), 2u);
}

TEST_F(PortTableTest, AutomaticPortsAreFreeOnesOfTheRange) {
  PortTable small{{40000, 40003}, [this] { return static_cast<std::uint32_t>(random()); }};
  std::set<std::uint16_t> ports;
  for (std::uint32_t id = 1; id <= 4; ++id) {
    PortOwner one = owner(id, "*", 0);
    ASSERT_EQ(small.bind(kNode, PortSpace::Tcp, one), Error::None) << id;
    EXPECT_TRUE(ports.insert(one.address.port).second);
  }
  EXPECT_EQ(*ports.begin(), 40000);
  EXPECT_EQ(*ports.rbegin(), 40003);
  PortOwner one = owner(5, "*", 0);
  EXPECT_EQ(small.bind(kNode, PortSpace::Tcp, one), Error::NoAddress);
  small.release(kNode, PortSpace::Tcp, 40001, 0);
  for (const std::uint16_t port : ports) {
    for (std::uint32_t id = 1; id <= 4; ++id) small.release(kNode, PortSpace::Tcp, port, id);
  }
  EXPECT_TRUE(small.is_empty());
}

}  // namespace
}  // namespace ib::services::rdma_cm
