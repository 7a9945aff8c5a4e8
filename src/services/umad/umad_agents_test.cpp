// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_agents.h"

#include "mad/mgmt_class.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ib::services {
namespace {

constexpr std::uint32_t kPort = 7;

UmadAgent agent(std::uint8_t mgmt_class, mad::MethodSet methods = {}, std::uint8_t version = 1) {
  UmadAgent agent;
  agent.port = kPort;
  agent.what.mgmt_class = mgmt_class;
  agent.what.class_version = version;
  agent.what.methods = methods;
  agent.what.oui = 0x1405;
  return agent;
}

mad::Mad mad_of(std::uint8_t mgmt_class, std::uint8_t method, std::uint8_t version = 1,
                std::uint32_t oui = 0x1405) {
  mad::Mad mad{};
  const mad::MadHeader header{1, mgmt_class, version, method, 0, 0, 1, 0x12, 0, 0};
  std::memcpy(mad.data(), &header, sizeof header);
  if (mad::has_oui(mgmt_class)) {
    const Be24 bytes = oui;
    std::memcpy(mad.data() + mad::kOuiOffset, &bytes, sizeof bytes);
  }
  return mad;
}

TEST(UmadAgents, ARequestGoesToTheAgentOfItsClassVersionMethodAndPort) {
  UmadAgents agents;
  const auto get = agents.add(agent(4, {mad::method::kGet}), false);
  const auto set = agents.add(agent(4, {mad::method::kSet}), false);
  const auto newer = agents.add(agent(4, {mad::method::kGet}, 2), false);
  ASSERT_TRUE(get && set && newer);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(4, mad::method::kGet)), *get);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(4, mad::method::kSet)), *set);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(4, mad::method::kGet, 2)), *newer);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(4, mad::method::kTrap)), 0u);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(5, mad::method::kGet)), 0u);
  EXPECT_EQ(agents.match(kPort, 0, mad_of(4, mad::method::kGet)), 0u);
  EXPECT_EQ(agents.match(kPort + 1, 1, mad_of(4, mad::method::kGet)), 0u);
  agents.remove(*get);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(4, mad::method::kGet)), 0u);
  EXPECT_TRUE(agents.serves(kPort, 4));
  agents.remove(*set);
  agents.remove(*newer);
  EXPECT_FALSE(agents.serves(kPort, 4));
  EXPECT_EQ(agents.size(), 0u);
}

TEST(UmadAgents, TwoAgentsOfAPortNeverTakeTheSameMethod) {
  UmadAgents agents;
  ASSERT_TRUE(agents.add(agent(4, {mad::method::kGet, mad::method::kSet}), false));
  EXPECT_EQ(agents.add(agent(4, {mad::method::kSet}), false).error(), Status::InvalidParameter);
  EXPECT_TRUE(agents.add(agent(4), false)) << "one that only sends is in nobody's way";
  UmadAgent elsewhere = agent(4, {mad::method::kSet});
  elsewhere.port = kPort + 1;
  EXPECT_TRUE(agents.add(elsewhere, false));
}

TEST(UmadAgents, VendorClassesAreSharedByCompanies) {
  UmadAgents agents;
  const auto first = agents.add(agent(0x32, {mad::method::kGet}), false);
  UmadAgent other = agent(0x32, {mad::method::kGet});
  other.what.oui = 0x0002c9;
  const auto second = agents.add(other, false);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(0x32, mad::method::kGet)), *first);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(0x32, mad::method::kGet, 1, 0x0002c9)), *second);
  EXPECT_EQ(agents.match(kPort, 1, mad_of(0x32, mad::method::kGet, 1, 0x000001)), 0u);
  other.what.oui = 0;
  EXPECT_EQ(agents.add(other, false).error(), Status::InvalidParameter);
}

TEST(UmadAgents, ClassesQueuePairsAndRmppHaveToFit) {
  UmadAgents agents;
  const auto refusal = [&](UmadAgent one, bool is_ethernet = false) {
    return agents.add(one, is_ethernet).error();
  };
  UmadAgent one = agent(4);
  one.what.qpn = 2;
  EXPECT_EQ(refusal(one), Status::InvalidParameter);
  one.what.qpn = 0;
  EXPECT_EQ(refusal(one), Status::InvalidParameter);
  EXPECT_EQ(refusal(one, true), Status::NotSupported);
  for (const std::uint8_t mgmt_class :
       std::to_array<std::uint8_t>({0x01, 0x81, 0x50, 0x80, 0xff})) {
    EXPECT_EQ(refusal(agent(mgmt_class)), Status::InvalidParameter) << int{mgmt_class};
  }
  for (const std::uint8_t mgmt_class : std::to_array<std::uint8_t>({0x01, 0x81})) {
    one = agent(mgmt_class);
    one.what.qpn = 0;
    EXPECT_EQ(refusal(one), Status::Ok) << int{mgmt_class};
  }
  one = agent(4);
  one.what.rmpp_version = 1;
  EXPECT_EQ(refusal(one), Status::InvalidParameter);
  one = agent(3, {}, 2);
  one.what.rmpp_version = 2;
  EXPECT_EQ(refusal(one), Status::InvalidParameter);
  one.what.rmpp_version = 1;
  EXPECT_EQ(refusal(one), Status::Ok);
  EXPECT_EQ(refusal(agent(4, {}, 0x83)), Status::InvalidParameter);
  EXPECT_EQ(refusal(agent(0)), Status::Ok);
  one = agent(0);
  one.what.has_own_rmpp = true;
  EXPECT_EQ(refusal(one), Status::InvalidParameter);
}

TEST(UmadAgents, ATrapRepressIsAResponse) {
  EXPECT_TRUE(is_umad_response(mad_of(1, mad::method::kTrapRepress)));
  EXPECT_TRUE(is_umad_response(mad_of(3, mad::method::kGetTableResp)));
  EXPECT_FALSE(is_umad_response(mad_of(1, mad::method::kTrap)));
  mad::Mad baseboard = mad_of(mad::mgmt_class::kBm, mad::method::kSend);
  EXPECT_FALSE(is_umad_response(baseboard));
  baseboard[23] = std::byte{1};
  EXPECT_TRUE(is_umad_response(baseboard));
}

}  // namespace
}  // namespace ib::services
