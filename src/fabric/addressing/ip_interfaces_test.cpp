// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/addressing/ip_interfaces.h"

#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <string>

namespace ib::fabric {
namespace {

const verbs::Gid kOne = verbs::ipv4_gid(0x0a000001);
const verbs::Gid kTwo = verbs::ipv4_gid(0x0a000002);
constexpr std::uint64_t kDriver = 7;

class IpInterfacesTest : public testing::Test {
 protected:
  Status set(std::uint32_t node, const char* name, std::initializer_list<verbs::Gid> addresses,
             std::uint64_t owner = kDriver) {
    IpInterface interface;
    interface.name = name;
    interface.owner = owner;
    for (const verbs::Gid& ip : addresses) interface.addresses.push_back({ip, 24});
    return table.set(node, interface);
  }
  // "0 ib0;1 ib0;"
  std::string holders(const verbs::Gid& ip) const {
    std::string text;
    for (const auto& holder : table.with_address(ip)) {
      text += std::to_string(holder.node) + ' ' + holder.interface->name + ';';
    }
    return text;
  }
  IpInterfaces table;
};

TEST_F(IpInterfacesTest, AnAddressMayBeAtSeveralInterfaces) {
  ASSERT_EQ(set(1, "ib0", {kOne}), Status::Ok);
  ASSERT_EQ(set(0, "ib0", {kOne, kTwo}), Status::Ok);
  ASSERT_EQ(set(0, "ib0.8001", {kOne}), Status::Ok);
  EXPECT_EQ(holders(kOne), "0 ib0;0 ib0.8001;1 ib0;");
  EXPECT_EQ(holders(kTwo), "0 ib0;");
}

TEST_F(IpInterfacesTest, AReportTakesThePlaceOfTheOneBefore) {
  ASSERT_EQ(set(0, "ib0", {kOne}), Status::Ok);
  ASSERT_EQ(set(0, "ib0", {kTwo}), Status::Ok);
  EXPECT_EQ(holders(kOne), "");
  EXPECT_EQ(holders(kTwo), "0 ib0;");
  EXPECT_EQ(table.of(0).size(), 1u);
}

TEST_F(IpInterfacesTest, OnlyItsOwnerTakesAnInterfaceAway) {
  ASSERT_EQ(set(0, "ib0", {kOne}), Status::Ok);
  ASSERT_EQ(set(0, "ib1", {kTwo}, kDriver + 1), Status::Ok);
  table.remove(0, "ib0", kDriver + 1);
  EXPECT_EQ(holders(kOne), "0 ib0;");
  table.remove(0, "ib0", kDriver);
  EXPECT_EQ(holders(kOne), "");
  table.remove_all_of(kDriver);
  EXPECT_EQ(holders(kTwo), "0 ib1;");
  table.remove_all_of(kDriver + 1);
  EXPECT_EQ(holders(kTwo), "");
  EXPECT_TRUE(table.of(0).empty());
}

TEST_F(IpInterfacesTest, ANodeHasABoundedNumberOfThem) {
  for (std::size_t i = 0; i < IpInterfaces::kMostOfNode; ++i) {
    ASSERT_EQ(set(0, ("ib" + std::to_string(i)).c_str(), {}), Status::Ok);
  }
  EXPECT_EQ(set(0, "one more", {}), Status::LimitExceeded);
  EXPECT_EQ(set(0, "ib0", {kOne}), Status::Ok) << "it is there";
  EXPECT_EQ(set(1, "ib0", {}), Status::Ok);
}

}  // namespace
}  // namespace ib::fabric
