// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/subnet_reading.h"

#include <gtest/gtest.h>

namespace ib::softib {
namespace {

using fabric::kNoIndex;
using fabric::LinkState;
using fabric::ShownSubnet;

const Json kTopology = Json::parse(R"({"version": 1, "elements": [
  {"kind": "adapter", "guid": "0x1", "description": "node0 softib0", "node": "node0", "hca": "softib0",
   "present": true, "ports": [{"port": 1, "state": "active", "lid": 4, "width": "4x", "speed": "EDR",
     "counters": {"symbol_errors": 3, "link_downed": 1, "sent_data": 10, "received_data": 5,
                  "sent_packets": 2, "transmit_wait": 9, "sent_unicast": 1, "received_multicast": 4,
                  "transmit_discards": 7, "inactive_discards": 5},
     "peer": {"guid": "0x9", "description": "switch-0", "port": 2}}]},
  {"kind": "adapter", "guid": "0x2", "description": "e", "node": "node1", "present": true, "ports": []},
  {"kind": "adapter", "guid": "0x3", "description": "f", "node": "node2", "present": true,
   "ports": [{"port": 1, "state": "down", "peer": {"guid": "0x9", "description": "", "port": 1}}]},
  {"kind": "switch", "guid": "0x9", "description": "switch-0", "power": false, "ports": [
    {"port": 0, "state": "active", "lid": 7},
    {"port": 1, "state": "down"},
    {"port": 2, "state": "init", "width": "4x", "speed": "EDR",
     "peer": {"guid": "0x1", "description": "node0 softib0", "port": 1}}]}]})");

TEST(SubnetReading, ElementsPortsAndCountersAreRead) {
  const ShownSubnet subnet = read_subnet(kTopology, Json::object());
  ASSERT_EQ(subnet.elements.size(), 3u) << "an adapter without an InfiniBand port is left out";
  const fabric::ShownPort& port = subnet.elements[0].ports[0];
  EXPECT_EQ(port.rate, "4xEDR");
  EXPECT_EQ(port.sent, (fabric::ShownTraffic{10, 2, 1, 0}));
  EXPECT_EQ(port.received, (fabric::ShownTraffic{5, 0, 0, 4}));
  EXPECT_EQ(port.data(), 15u);
  EXPECT_EQ(port.packets(), 2u);
  EXPECT_EQ(troubles_text(port), "symbol errors 3, link downed 1, transmit discards 7");
  EXPECT_EQ(port.errors, 5u) << "without what follows when a link goes down";
  EXPECT_EQ(port.peer, 2u);
  const fabric::ShownElement& hub = subnet.elements[2];
  EXPECT_EQ(hub.lid, 7u);
  EXPECT_FALSE(hub.is_there);
  EXPECT_EQ(hub.ports.size(), 2u) << "without port 0";
  EXPECT_EQ(hub.ports[1].state, LinkState::Init);
}

// Else a picture warns until somebody clears the counters, of a cable that is in again.
TEST(SubnetReading, ALinkThatWentDownOnceIsNoError) {
  Json topology = kTopology;
  Json& counters = topology["elements"][0]["ports"][0]["counters"];
  counters = {{"link_downed", 2u}, {"transmit_discards", 3u}, {"inactive_discards", 3u}};
  ShownSubnet subnet = read_subnet(topology, Json::object());
  EXPECT_EQ(subnet.elements[0].ports[0].errors, 0u);
  EXPECT_FALSE(subnet.elements[0].ports[0].has_errors);
  counters["receive_errors"] = 1u;
  subnet = read_subnet(topology, Json::object());
  EXPECT_EQ(subnet.elements[0].ports[0].errors, 1u);
  EXPECT_TRUE(subnet.elements[0].ports[0].has_errors);
}

TEST(SubnetReading, ACableThatOnlyOneEndNamesIsNone) {
  EXPECT_EQ(read_subnet(kTopology, Json::object()).elements[1].ports[0].peer, kNoIndex);
}

TEST(SubnetReading, ProgramsAreThoseWithObjectsAndThoseWithout) {
  const Json state = Json::parse(
      R"({"clients": [{"pid": 5, "program": "rping", "node": "node0"}],
          "programs": [{"pid": 5, "program": "rping", "node": "node0", "has_hca": true},
                       {"pid": 6, "program": "listens", "node": "node0", "has_hca": false}]})");
  const ShownSubnet subnet = read_subnet(kTopology, state);
  EXPECT_EQ(subnet.elements[0].programs,
            (std::vector<fabric::ShownProgram>{{"rping", 5}, {"listens", 6}}));
}

TEST(SubnetReading, PortsWithoutACableThatAreUpAreOnTheIdealNetwork) {
  const ShownSubnet subnet = read_subnet(Json::parse(R"({"elements": [
    {"kind": "adapter", "guid": "0x1", "present": true, "ports": [{"port": 1, "state": "active"}]},
    {"kind": "adapter", "guid": "0x2", "present": true, "ports": [{"port": 1, "state": "down"}]}]})"),
                                         Json::object());
  ASSERT_EQ(subnet.elements.size(), 3u);
  EXPECT_TRUE(subnet.elements[2].is_ideal);
  EXPECT_EQ(subnet.elements[0].ports[0].peer, 2u);
  EXPECT_EQ(subnet.elements[1].ports[0].peer, kNoIndex);
}

TEST(SubnetReading, AWayBecomesTheRoute) {
  ShownSubnet subnet = read_subnet(kTopology, Json::object());
  const Json path = Json::parse(R"({"from_guid": "0x1", "to_guid": "0x3", "arrives": false,
    "why": "it ends", "hops": [{"from_guid": "0x1", "out": 1}, {"from_guid": "0x77", "out": 1}]})");
  const std::uint64_t before = structure_of(subnet);
  read_route(subnet, path, "node0", "node2");
  EXPECT_EQ(subnet.route, (std::vector<fabric::TopologyEnd>{{0, 1}}));
  EXPECT_EQ(subnet.route_ends, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(subnet.route_text, "node0 to node2 does not arrive: it ends");
  EXPECT_NE(structure_of(subnet), before);
}

TEST(SubnetReading, StatesAndCountersAreNoStructure) {
  ShownSubnet subnet = read_subnet(kTopology, Json::object());
  const std::uint64_t before = structure_of(subnet);
  subnet.elements[0].ports[0].state = LinkState::Down;
  subnet.elements[0].ports[0].sent.data = 77;
  EXPECT_EQ(structure_of(subnet), before);
  subnet.elements[0].ports[0].peer = kNoIndex;
  EXPECT_NE(structure_of(subnet), before);
}

TEST(SubnetReading, WhatIsNoTopologyIsAnEmptySubnet) {
  EXPECT_TRUE(read_subnet(Json::object(), Json()).elements.empty());
  EXPECT_TRUE(
      read_subnet(Json::parse(R"({"elements": [1, "x", {}]})"), Json::object()).elements.empty());
}

}  // namespace
}  // namespace ib::softib
