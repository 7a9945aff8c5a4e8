// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ib::fabric {
namespace {

using testing::HasSubstr;

TopologyElement adapter(std::uint64_t guid, std::string description, std::uint32_t ports = 1) {
  TopologyElement element;
  element.node_guid = guid;
  element.description = std::move(description);
  element.ports = ports;
  return element;
}

// Two hosts at a switch with four ports.
Topology two_hosts() {
  Topology topology;
  topology.elements = {adapter(0x100, "a", 2), adapter(0x200, "b"), adapter(0x300, "leaf", 4)};
  topology.elements[2].kind = ElementKind::Switch;
  topology.cables = {{{0, 1}, {2, 1}}, {{1, 1}, {2, 2}}};
  return topology;
}

// The sentence of check(); "" if it has no complaint.
std::string complaint(const Topology& topology, Status expected = Status::InvalidParameter) {
  std::string reason;
  const Status status = check(topology, reason);
  EXPECT_EQ(status, reason.empty() ? Status::Ok : expected);
  return reason;
}

TEST(Topology, ASmallSubnetIsInOrder) {
  EXPECT_EQ(complaint(two_hosts()), "");
}

TEST(Topology, GuidsOfPortsFollowFromThatOfTheNodeUnlessGiven) {
  Topology topology = two_hosts();
  EXPECT_EQ(end_port_guid(topology.elements[0], 1), 0x102u);
  EXPECT_EQ(end_port_guid(topology.elements[2], 0), 0x300u);
  topology.elements[0].port_guids = {0x555, 0x100};
  EXPECT_EQ(end_port_guid(topology.elements[0], 1), 0x100u);
  EXPECT_EQ(complaint(topology), "") << "a port may have the GUID of its node";
}

TEST(Topology, GuidsAreThereOnce) {
  Topology topology = two_hosts();
  topology.elements[1].node_guid = 0x300;
  EXPECT_EQ(complaint(topology),
            "channel adapter \"b\" (0x0000000000000300) and switch \"leaf\" (0x0000000000000300) "
            "have the same node GUID, 0x300; each needs its own");
  topology = two_hosts();
  topology.elements[1].port_guids = {0x102};
  EXPECT_THAT(complaint(topology), HasSubstr("have the same port GUID, 0x102"));
  topology = two_hosts();
  topology.elements[0].node_guid = 0;
  EXPECT_THAT(complaint(topology), HasSubstr("has the node GUID 0"));
  topology = two_hosts();
  topology.elements[0].lids = {4, 0};
  topology.elements[2].lids = {4};
  EXPECT_THAT(complaint(topology), HasSubstr("have the same LID, 0x4"));
  topology.elements[2].lids = {0xc000};
  EXPECT_THAT(complaint(topology), HasSubstr("LID 0xc000; LIDs of ports are 1 to 0xbfff"));
}

TEST(Topology, AnElementHasAsManyPortsAsANumberOfOneByteCanName) {
  Topology topology = two_hosts();
  topology.elements[2].ports = 254;
  EXPECT_EQ(complaint(topology), "");
  topology.elements[2].ports = 255;
  EXPECT_THAT(complaint(topology), HasSubstr("has 255 ports; a switch has 1 to 254"));
  topology.elements[2].ports = 1000000;
  EXPECT_THAT(complaint(topology), HasSubstr("has 1000000 ports"));
  topology = two_hosts();
  topology.elements[0].ports = 255;
  EXPECT_EQ(complaint(topology), "");
  topology.elements[1].ports = 0;
  EXPECT_THAT(complaint(topology), HasSubstr("has 0 ports; a channel adapter has 1 to 255"));
}

TEST(Topology, EachEndPortNeedsALid) {
  Topology topology;
  for (std::uint64_t i = 1; i <= kMaxTopologyLids; ++i) {
    topology.elements.push_back(adapter(i << 8, "n"));
  }
  EXPECT_EQ(complaint(topology), "");
  topology.elements[0].kind = ElementKind::Switch;
  topology.elements[0].ports = 36;
  EXPECT_EQ(complaint(topology), "") << "a switch needs one";
  topology.elements[1].ports = 2;
  EXPECT_THAT(complaint(topology, Status::LimitExceeded),
              HasSubstr("has 49152 switches and ports of channel adapters"));
  topology = {};
  for (std::uint64_t i = 1; i <= 5000; ++i) {
    topology.elements.push_back(adapter(i << 8, "s", 254));
    topology.elements.back().kind = ElementKind::Switch;
  }
  EXPECT_THAT(complaint(topology, Status::LimitExceeded), HasSubstr("has 1270000 ports"));
  EXPECT_THAT(complaint({}), HasSubstr("has no element"));
}

TEST(Topology, ACableJoinsTwoPortsThatExist) {
  Topology topology = two_hosts();
  topology.cables[1].b = {2, 5};
  EXPECT_EQ(complaint(topology),
            "a cable leads to port 5 of switch \"leaf\" (0x0000000000000300), which has ports 1 to "
            "4");
  topology.cables[1].b = {2, 0};
  EXPECT_THAT(complaint(topology), HasSubstr("a cable leads to port 0 of switch"));
  topology.cables[1].b = {3, 1};
  EXPECT_THAT(complaint(topology), HasSubstr("leads to element 3; the topology has elements 0 to"));
  topology.cables[1].a = {3, 1};
  EXPECT_THAT(complaint(topology), HasSubstr("leads to element 3; the topology has elements 0 to"));
}

TEST(Topology, APortHasOneCable) {
  Topology topology = two_hosts();
  topology.cables[1].b = {2, 1};
  EXPECT_EQ(complaint(topology),
            "two cables lead to port 1 of switch \"leaf\" (0x0000000000000300): from port 1 of "
            "channel adapter \"a\" (0x0000000000000100) and from port 1 of channel adapter \"b\" "
            "(0x0000000000000200); a port takes one");
  topology = two_hosts();
  topology.cables[1].a = topology.cables[1].b;
  EXPECT_THAT(complaint(topology), HasSubstr("to the same port"));
  topology.cables[1].a.port = 3;
  EXPECT_EQ(complaint(topology), "") << "two ports of one switch";
}

TEST(Topology, OtherValuesHaveTheirRanges) {
  Topology topology = two_hosts();
  topology.cables[0].width = 3;
  EXPECT_THAT(complaint(topology), HasSubstr("the codes 3 for its width and 32 for its speed"));
  topology.cables[0].width = 16;
  topology.cables[0].speed = 128;
  EXPECT_EQ(complaint(topology), "");
  topology.elements[0].description = std::string(64, 'x');
  EXPECT_EQ(complaint(topology), "");
  topology.elements[0].description += 'x';
  EXPECT_THAT(complaint(topology), HasSubstr("has 65 bytes; it may have 64"));
  topology.elements[0].description = "a\nb";
  EXPECT_THAT(complaint(topology),
              HasSubstr("of channel adapter \"a?b\" (0x0000000000000100) has control"));
  topology = two_hosts();
  topology.elements[0].port_guids = {7};
  EXPECT_THAT(complaint(topology), HasSubstr("has 1 port GUIDs and 0 LIDs"));
  topology = two_hosts();
  topology.elements[0].vendor = 0x1000000;
  EXPECT_THAT(complaint(topology), HasSubstr("vendor ID 0x1000000"));
  topology = two_hosts();
  topology.elements[0].lmc = 8;
  EXPECT_THAT(complaint(topology), HasSubstr("LMC 8"));
}

TEST(Topology, SortedOnesAreEqualIfTheyAreTheSameSubnet) {
  const Topology topology = two_hosts();
  Topology other = topology;
  std::swap(other.elements[0], other.elements[2]);
  other.cables = {{{0, 2}, {1, 1}}, {{2, 1}, {0, 1}}};
  EXPECT_NE(other, topology);
  EXPECT_EQ(sorted(other), sorted(topology));
  EXPECT_EQ(sorted(topology).elements[0].description, "leaf");
  other.cables[0].is_up = false;
  EXPECT_NE(sorted(other), sorted(topology));
}

}  // namespace
}  // namespace ib::fabric
