// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/subnet/counters_page.h"

#include "fabric/picture/preset_subnet_test.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ib::softib {
namespace {

using fabric::ShownSubnet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// node0 has sent 1,000 packets of 1 KiB to node1; the cable of node1 makes errors.
ShownSubnet busy_star() {
  ShownSubnet subnet = fabric::shown_preset("star:4");
  const auto port = [&](const char* name, std::uint32_t number) -> fabric::ShownPort& {
    return subnet.elements[place_of(subnet, name)].ports[number - 1];
  };
  const fabric::ShownTraffic much{256000, 1000, 1000, 0};
  port("node0", 1).sent = port("switch-0", 1).received = much;
  port("node1", 1).received = port("switch-0", 2).sent = much;
  port("switch-0", 1).sent = {700, 9, 5, 4};
  port("node1", 1).troubles = {{"symbol_errors", 3}, {"link_downed", 1}};
  return subnet;
}

std::vector<PortCount> busy() {
  return port_counts(busy_star());
}

std::vector<std::string> lines_of(const std::string& page) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    lines.push_back(page.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> names_of(const std::vector<PortCount>& ports) {
  std::vector<std::string> names;
  for (const PortCount& port : ports) {
    names.push_back(port.element + ":" + std::to_string(port.number));
  }
  return names;
}

TEST(CountersPage, ShowsWhatHasCarriedSomething) {
  EXPECT_THAT(
      lines_of(counters_page(busy(), false)),
      ElementsAre("PORT               LEADS TO                 SENT   PACKETS   RECEIVED   PACKETS",
                  "node0:1            switch-0:1         1000.0 KiB      1000        0 B         0",
                  "node1:1            switch-0:2                0 B         0 1000.0 KiB      1000",
                  "    errors: symbol errors 3, link downed 1",
                  "switch-0:1         node0:1               2.7 KiB         9 1000.0 KiB      1000",
                  "    unicast 5 sent, 1000 received; multicast 4 sent, 0 received",
                  "switch-0:2         node1:1            1000.0 KiB      1000        0 B         0",
                  "4 other ports have carried nothing (`--all` lists them)"));
}

TEST(CountersPage, AllMeansAll) {
  const std::string page = counters_page(busy(), true);
  EXPECT_EQ(lines_of(page).size(), 1 + 8 + 2u);
  EXPECT_THAT(page, Not(HasSubstr("carried nothing")));
}

TEST(CountersPage, APortThatIsAskedForIsShown) {
  const auto port = ports_named(busy(), "switch-0:4");
  EXPECT_THAT(names_of(port), ElementsAre("switch-0:4"));
  EXPECT_EQ(lines_of(counters_page(port, false)).size(), 2u);
  EXPECT_EQ(counters_page(ports_named(busy(), "node3"), false),
            "no port has carried anything (`--all` lists them)\n");
}

TEST(CountersPage, StatesAndPortsWithoutACableAreTold) {
  ShownSubnet subnet = busy_star();
  set_link(subnet, {place_of(subnet, "node0"), 1}, fabric::LinkState::Down);
  subnet.elements[place_of(subnet, "switch-0")].ports.emplace_back().number = 5;
  const std::string page = counters_page(port_counts(subnet), false);
  EXPECT_THAT(page, HasSubstr("        0 B         0 (down)\n"));
  EXPECT_THAT(page, HasSubstr("5 other ports have carried nothing, 1 of them without a cable"));
}

TEST(CountersPage, LongNamesKeepTheNumberOfThePort) {
  ShownSubnet subnet = busy_star();
  subnet.elements[place_of(subnet, "switch-0")].name = "the-switch-in-the-cellar";
  EXPECT_THAT(counters_page(port_counts(subnet), false), HasSubstr("\nthe-switch-in...:1 node0:1"));
}

TEST(CountersPage, WithoutPortsItNamesTheOtherPage) {
  EXPECT_THAT(counters_page({}, false), StartsWith("no InfiniBand ports; `softib status`"));
}

TEST(RatesPage, TheBusiestComesFirst) {
  ShownSubnet subnet = busy_star();
  const auto before = port_counts(subnet);
  fabric::ShownPort& port = subnet.elements[place_of(subnet, "node2")].ports[0];
  port.sent = {1024, 8, 8, 0};
  subnet.elements[place_of(subnet, "switch-0")].ports[1].sent.data += 4096;
  subnet.elements[place_of(subnet, "switch-0")].ports[1].sent.packets += 16;
  subnet.elements[place_of(subnet, "node1")].ports[0].troubles[0].count += 2;
  EXPECT_THAT(
      lines_of(rates_page(counted_since(before, port_counts(subnet)), 2, false)),
      ElementsAre("PORT               LEADS TO               SENT/S PACKETS/S RECEIVED/S PACKETS/S",
                  "switch-0:2         node1:1               8.0 KiB         8        0 B         0",
                  "node2:1            switch-0:3            2.0 KiB         4        0 B         0",
                  "node1:1            switch-0:2                0 B         0        0 B         0",
                  "    new errors: symbol errors 2",
                  "5 other ports have carried nothing in 2.0 s (`--all` lists them)"));
}

TEST(PortCounts, ACounterThatWasClearedBeganAgain) {
  const auto before = busy();
  ShownSubnet subnet = busy_star();
  fabric::ShownPort& port = subnet.elements[place_of(subnet, "node0")].ports[0];
  port.sent = {10, 2, 2, 0};
  const auto more = ports_named(counted_since(before, port_counts(subnet)), "node0");
  EXPECT_EQ(more.front().sent, (fabric::ShownTraffic{10, 2, 2, 0}));
}

TEST(PortCounts, ElementsHaveSeveralNames) {
  ShownSubnet subnet = fabric::shown_preset("star:3");
  subnet.elements[1].node = "node0";
  subnet.elements[0].hca = "softib0";
  subnet.elements[1].hca = "softib1";
  const auto all = port_counts(subnet);
  EXPECT_THAT(names_of(ports_named(all, "node0")), ElementsAre("node0:1", "node0/softib1:1"));
  EXPECT_THAT(names_of(ports_named(all, "node0:1")), ElementsAre("node0:1"));
  EXPECT_THAT(names_of(ports_named(all, "node0/softib0")), ElementsAre("node0:1"));
  EXPECT_THAT(names_of(ports_named(all, "node0/softib1:1")), ElementsAre("node0/softib1:1"));
  EXPECT_EQ(ports_named(all, "switch-0").size(), 3u);
  EXPECT_EQ(ports_named(all, fmt::format("{:#x}:2", all.back().guid)).size(), 1u);
  EXPECT_TRUE(ports_named(all, "switch-0:4").empty());
  EXPECT_TRUE(ports_named(all, "").empty());
  EXPECT_TRUE(ports_named(all, "node1").empty());
  EXPECT_THAT(element_names(all), ElementsAre("node0", "node0/softib1", "node2", "switch-0"));
}

TEST(CountersJson, HasAllPortsAndRates) {
  ShownSubnet subnet = busy_star();
  const auto before = port_counts(subnet);
  subnet.elements[place_of(subnet, "node0")].ports[0].sent.data += 1000;
  const Json json = rates_json(port_counts(subnet), before, 0.5);
  ASSERT_EQ(json["ports"].size(), 8u);
  EXPECT_EQ(json["seconds"], 0.5);
  const Json& port = json["ports"][0];
  EXPECT_EQ(port["element"], "node0");
  EXPECT_EQ(port["peer"], Json({{"element", "switch-0"}, {"port", 1}}));
  EXPECT_EQ(port["sent"]["bytes"], 4 * 257000);
  EXPECT_EQ(port["sent"]["unicast"], 1000);
  EXPECT_EQ(port["sent_per_second"]["bytes"], 8000);
  EXPECT_EQ(json["ports"][1]["errors"], Json({{"symbol_errors", 3}, {"link_downed", 1}}));
}

}  // namespace
}  // namespace ib::softib
