// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/agent_table.h"

#include "mad/mgmt_class.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::mad {
namespace {

Mad request(std::uint8_t mgmt_class, std::uint8_t version, std::uint8_t method,
            std::uint32_t oui = 0) {
  Mad mad{};
  MadHeader header;
  header = {1, mgmt_class, version, method, 0, 0, 1, 1, 0, 0};
  std::memcpy(mad.data(), &header, sizeof header);
  if (has_oui(mgmt_class)) {
    mad[kOuiOffset] = std::byte(oui >> 16);
    mad[kOuiOffset + 1] = std::byte(oui >> 8 & 0xff);
    mad[kOuiOffset + 2] = std::byte(oui & 0xff);
  }
  return mad;
}

struct Table : ::testing::Test {
  AgentTable table{4};
  std::string reason;
  AgentId add(const AgentKey& key, const char* name = "first") {
    const auto id = table.add(key, name, reason);
    EXPECT_TRUE(id) << reason;
    return id ? *id : 0;
  }
  Status refused(const AgentKey& key) { return table.add(key, "second", reason).error(); }
};

TEST_F(Table, ARequestGoesToTheAgentOfItsClassVersionAndMethod) {
  const AgentId get = add({mgmt_class::kSubnAdm, 2, 0, {method::kGet}});
  const AgentId set = add({mgmt_class::kSubnAdm, 2, 0, {method::kSet, method::kDelete}});
  EXPECT_EQ(table.match(0, request(mgmt_class::kSubnAdm, 2, method::kGet)).agent, get);
  EXPECT_EQ(table.match(9, request(mgmt_class::kSubnAdm, 2, method::kDelete)).agent, set);
  table.remove(set);
  const auto method = table.match(0, request(mgmt_class::kSubnAdm, 2, method::kSet));
  EXPECT_EQ(method.agent, 0u);
  EXPECT_EQ(method.refusal, mad_status::kMethodNotSupported);
  EXPECT_EQ(table.match(0, request(mgmt_class::kSubnAdm, 1, method::kGet)).refusal,
            mad_status::kBadVersion);
  EXPECT_EQ(table.match(0, request(mgmt_class::kPerf, 1, method::kGet)).refusal,
            mad_status::kBadVersion);
  Mad other_base = request(mgmt_class::kSubnAdm, 2, method::kGet);
  other_base[0] = std::byte{2};
  EXPECT_EQ(table.match(0, other_base).agent, 0u);
}

TEST_F(Table, VendorsShareClassesByTheirOui) {
  const AgentId one = add({0x32, 1, 0x0002c9, {method::kGet}});
  const AgentId two = add({0x32, 1, 0x001405, {method::kGet}});
  EXPECT_EQ(table.match(0, request(0x32, 1, method::kGet, 0x0002c9)).agent, one);
  EXPECT_EQ(table.match(0, request(0x32, 1, method::kGet, 0x001405)).agent, two);
  EXPECT_EQ(table.match(0, request(0x32, 1, method::kGet, 1)).agent, 0u);
}

TEST_F(Table, AgentsOfPortsStandBesideEachOther) {
  const AgentId one = add({mgmt_class::kPerf, 1, 0, {method::kGet}, 1});
  const AgentId two = add({mgmt_class::kPerf, 1, 0, {method::kGet}, 2});
  EXPECT_EQ(table.match(1, request(mgmt_class::kPerf, 1, method::kGet)).agent, one);
  EXPECT_EQ(table.match(2, request(mgmt_class::kPerf, 1, method::kGet)).agent, two);
  EXPECT_EQ(table.match(3, request(mgmt_class::kPerf, 1, method::kGet)).agent, 0u);
  EXPECT_EQ(refused({mgmt_class::kPerf, 1, 0, {method::kGet}}), Status::AlreadyExists);
}

TEST_F(Table, NoTwoAgentsTakeTheSameRequest) {
  const AgentId id = add({mgmt_class::kPerf, 1, 0, {method::kGet, method::kSet}});
  EXPECT_EQ(refused({mgmt_class::kPerf, 1, 0, {method::kSet, method::kTrap}}),
            Status::AlreadyExists);
  EXPECT_EQ(reason, "first takes method 0x02 of class 0x04");
  EXPECT_EQ(refused({mgmt_class::kPerf, 1, 0, {method::kGet}, 7}), Status::AlreadyExists);
  add({mgmt_class::kPerf, 2, 0, {method::kGet}});
  add({mgmt_class::kPerf, 1, 0, {}});
  table.remove(id);
  add({mgmt_class::kPerf, 1, 0, {method::kSet}});
}

TEST_F(Table, WrongKeysAreRefused) {
  EXPECT_EQ(refused({mgmt_class::kSubnLid, 1, 0, {}}), Status::InvalidParameter);
  EXPECT_EQ(refused({mgmt_class::kSubnDirected, 1, 0, {}}), Status::InvalidParameter);
  EXPECT_EQ(refused({0, 1, 0, {}}), Status::InvalidParameter);
  for (const unsigned reserved : {0x02u, 0x50u, 0x7fu, 0x90u}) {
    EXPECT_EQ(refused({static_cast<std::uint8_t>(reserved), 1, 0, {}}), Status::InvalidParameter);
  }
  EXPECT_EQ(refused({0x30, 1, 0x1000000, {}}), Status::InvalidParameter);
  EXPECT_EQ(refused({mgmt_class::kPerf, 1, 5, {}}), Status::InvalidParameter);
}

TEST_F(Table, IdsAreNotUsedTwiceAndAgentsHaveALimit) {
  const AgentId first = add({mgmt_class::kPerf, 1, 0, {}});
  table.remove(first);
  table.remove(first);
  EXPECT_EQ(table.find(first), nullptr);
  for (int i = 0; i < 4; ++i) EXPECT_NE(add({mgmt_class::kPerf, 1, 0, {}}), first);
  EXPECT_EQ(refused({mgmt_class::kPerf, 1, 0, {}}), Status::LimitExceeded);
  EXPECT_EQ(reason, "there are 4 agents");
}

TEST(Layout, HeadersOfClasses) {
  EXPECT_EQ(header_size(mgmt_class::kSubnAdm), 56u);
  EXPECT_EQ(header_size(mgmt_class::kDevMgt), 64u);
  EXPECT_EQ(header_size(0x30), 40u);
  EXPECT_EQ(header_size(0x4f), 40u);
  EXPECT_EQ(header_size(mgmt_class::kComMgt), 24u);
  EXPECT_EQ(attribute_offset(mgmt_class::kPerf), 64u);
  EXPECT_EQ(attribute_offset(mgmt_class::kComMgt), 24u);
  EXPECT_FALSE(has_rmpp(mgmt_class::kVendorLow));
  EXPECT_FALSE(has_rmpp(0x50));
}

}  // namespace
}  // namespace ib::mad
