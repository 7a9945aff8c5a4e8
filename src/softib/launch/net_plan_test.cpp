// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/net_plan.h"

#include "linux/net/ip_prefix.h"
#include "setup/cli_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ib::softib {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

Json node_of(const char* name, const char* own) {
  return {{"name", name},
          {"addresses", {{{"ip", own}, {"interface", "lo"}}}},
          {"address_source", "default"},
          {"default_address", own},
          {"hcas",
           {{{"name", "softib0"}, {"ports", {{{"number", 1}, {"link_layer", "infiniband"}}}}}}}};
}

Json state_of(Json nodes) {
  const std::size_t count = nodes.size();
  return {{"shape", {{"nodes", count}}}, {"nodes", std::move(nodes)}};
}

Json configured(const char* name, const char* own, const std::vector<const char*>& addresses) {
  Json node = node_of(name, own);
  node["address_source"] = "configured";
  node["addresses"] = Json::array();
  for (const char* ip : addresses) node["addresses"].push_back({{"ip", ip}, {"interface", ""}});
  return node;
}

std::vector<std::string> in_words(const std::vector<PlanEntry>& plan, std::uint32_t port) {
  std::vector<std::string> words;
  for (const PlanEntry& entry : plan) {
    if (entry.port != port) continue;
    const char* const kind = entry.kind == PlanKind::Address  ? "address "
                             : entry.kind == PlanKind::OnLink ? "route "
                                                              : "unreachable ";
    words.push_back(kind + os::net::text_of(os::net::IpPrefix{entry.ip, entry.bits}));
  }
  return words;
}

TEST(NetPlan, TheModeIsThatOfTheConfigurationFile) {
  Json node = node_of("a", "127.151.96.1");
  EXPECT_THROW((void)configured_mode(state_of(Json::array({node})), "a"), CliError);
  node["ipoib_mode"] = "connected";
  EXPECT_EQ(configured_mode(state_of(Json::array({node})), "a"), IpoibMode::Connected);
}

TEST(NetPlan, TheDefaultAddressIsOutsideOfTheLoopbackNetwork) {
  const auto plan =
      plan_network(state_of(Json::array({node_of("node1", "127.151.96.2")})), "node1");
  EXPECT_THAT(in_words(plan, 0),
              ElementsAre("unreachable 127.151.96.0/19", "address 10.151.96.2/24",
                          "address fd69:6200:a97:6000::2/64"));
  EXPECT_THAT(in_words(plan, 1),
              ElementsAre("address 10.151.97.2/24", "address fd69:6201:a97:6000::2/64"));
}

TEST(NetPlan, ConfiguredAddressesAreTakenAndHaveRoutesToThoseOfOthers) {
  const auto plan = plan_network(
      state_of({configured("a", "127.151.96.1", {"192.0.2.1", "fd00::1"}),
                configured("b", "127.151.96.2", {"192.0.2.2"}),
                configured("c", "127.151.96.3", {"198.51.100.3"}), node_of("d", "127.151.96.4")}),
      "a");
  EXPECT_THAT(in_words(plan, 0),
              ElementsAre("unreachable 127.151.96.0/19", "address 192.0.2.1/24",
                          "address fd00::1/64", "route 198.51.100.0/24", "route 10.151.96.0/24",
                          "route fd69:6200:a97:6000::/64"));
}

TEST(NetPlan, ConfiguredLoopbackAddressesAreNoneOfAnInterface) {
  const auto plan =
      plan_network(state_of(Json::array({configured("a", "127.151.96.1", {"127.77.0.1"})})), "a");
  EXPECT_THAT(in_words(plan, 0), Contains("address 10.151.96.1/24"));
  EXPECT_THAT(in_words(plan, 0), Not(Contains("address 127.77.0.1/24")));
}

TEST(NetPlan, ANodeWithEthernetPortsAloneHasNone) {
  Json node = node_of("node0", "127.151.96.1");
  node["hcas"][0]["ports"][0]["link_layer"] = "ethernet";
  EXPECT_THROW((void)plan_network(state_of(Json::array({node})), "node0"), CliError);
}

TEST(NetPlan, ADaemonOfAnotherVersionIsAnError) {
  Json old = node_of("node0", "127.151.96.1");
  old.erase("default_address");
  EXPECT_THROW((void)plan_network(state_of(Json::array({old})), "node0"), CliError);
  EXPECT_THROW((void)plan_network(state_of(Json::array()), "node0"), CliError);
}

TEST(NetPlan, HasABound) {
  Json nodes = Json::array({configured("a", "127.151.96.1", {"192.0.2.1"})});
  for (int i = 0; i < 200; ++i) {
    const std::string ip = "198.51." + std::to_string(i) + ".1";
    nodes.push_back(configured("b", "127.151.96.2", {ip.c_str()}));
  }
  EXPECT_EQ(plan_network(state_of(nodes), "a").size(), kMostPlanEntries);
}

}  // namespace
}  // namespace ib::softib
