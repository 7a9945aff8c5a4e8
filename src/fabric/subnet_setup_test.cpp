// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnets that softib manages: every port reaches every other by the tables; and those of others.
#include "fabric/subnet_setup.h"

#include "fabric/management/subnet_test.h"
#include "fabric/topology/snapshot.h"

#include <set>

namespace ib::fabric::test {
namespace {

using verbs::PortState;

class EveryTopology : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Preset, EveryTopology,
                         testing::Values("back-to-back", "star:5", "fat-tree:levels=2,ports=8",
                                         "fat-tree:levels=3,ports=4", "torus:3x3x2,hosts=2",
                                         "dragonfly:a=4,p=2,h=2",
                                         "random:nodes=20,switches=9,ports=12,seed=4"),
                         [](const auto& tested) { return "N" + std::to_string(tested.index); });

TEST_P(EveryTopology, EachEndPortReachesEachOtherByItsLid) {
  Subnet t(GetParam());
  std::vector<Port*> ends;
  std::set<std::uint16_t> lids;
  for (std::uint32_t i = 0; i < t.graph().port_count(); ++i) {
    Port& port = *t.graph().port(i);
    if (port.lid == 0) continue;
    ends.push_back(&port);
    EXPECT_TRUE(lids.insert(port.lid).second) << port.lid;
    EXPECT_EQ(port.state, PortState::Active);
  }
  for (Port* from : ends) {
    for (Port* to : ends) {
      const Arrival arrival = walk_by_lid(t.graph(), *from, {from->lid, to->lid});
      ASSERT_NE(arrival.port, nullptr) << arrival.reason;
      ASSERT_EQ(arrival.port->element, to->element);
      ASSERT_EQ(t.graph().route(*from, to->lid), to);
    }
  }
}

TEST_P(EveryTopology, IsTheOneThatWasAskedFor) {
  const Fabric fabric = make_subnet(GetParam());
  std::string reason;
  const Topology wanted = *preset_topology(GetParam(), reason);
  Topology is = snapshot_of(fabric);
  ASSERT_EQ(is.elements.size(), wanted.elements.size());
  ASSERT_EQ(is.cables.size(), wanted.cables.size());
  for (std::size_t i = 0; i < is.elements.size(); ++i) {
    EXPECT_EQ(is.elements[i].node_guid, wanted.elements[i].node_guid);
    EXPECT_EQ(is.elements[i].description, wanted.elements[i].description);
    EXPECT_EQ(is.elements[i].port_guids.front(), end_port_guid(wanted.elements[i], 0));
  }
}

TEST(SubnetSetup, TablesFollowACableThatGoes) {
  Subnet t("fat-tree:levels=2,ports=4");
  Port& from = t.port_of_node(0);
  Port& to = t.port_of_node(7);
  const Element& leaf = t.graph().element_of(*t.graph().peer_of(from));
  const std::uint8_t up = fresh_tables(t.graph(), leaf).port_to(to.lid);
  set_enabled(t.fabric, *t.graph().port_of(leaf, up), false, t.changes);
  const std::uint8_t other = fresh_tables(t.graph(), leaf).port_to(to.lid);
  EXPECT_NE(other, up);
  EXPECT_NE(other, kNoPort);
  EXPECT_NE(walk_by_lid(t.graph(), from, {from.lid, to.lid}).port, nullptr);
}

TEST(SubnetSetup, WithoutAnyWayPortsDoNotReachEachOther) {
  Subnet t("fat-tree:levels=2,ports=4");
  const Port& from = t.port_of_node(0);
  const Element& leaf = t.graph().element_of(*t.graph().peer_of(from));
  for (const std::uint32_t up : {3u, 4u}) {
    set_enabled(t.fabric, *t.graph().port_of(leaf, up), false, t.changes);
  }
  EXPECT_FALSE(t.graph().reaches(from, t.port_of_node(7)));
  EXPECT_TRUE(t.graph().reaches(from, t.port_of_node(1))) << "at the same switch";
  const auto is_segment = [](const PortChange& c) { return c.what == change::kSegment; };
  EXPECT_GE(std::ranges::count_if(t.changes, is_segment), 2);
}

TEST(SubnetSetup, AForeignManagerHasTheSubnetAsLongAsItIsThere) {
  Subnet t("star:3");
  Port& its = t.port_of_node(1);
  EXPECT_TRUE(t.fabric.is_managed_here(its));
  t.fabric.set_capabilities(its, its.capability_mask | kIsSm);
  EXPECT_FALSE(t.fabric.is_managed_here(t.port_of_node(2)));
  set_enabled(t.fabric, t.port_of_node(2), false, t.changes);
  set_enabled(t.fabric, t.port_of_node(2), true, t.changes);
  EXPECT_EQ(t.port_of_node(2).state, PortState::Init) << "it waits for the manager";
  t.port_of_node(0).sm_lid = its.lid;
  take_over(t.fabric, its, t.changes);
  EXPECT_EQ(t.port_of_node(2).state, PortState::Init) << "the manager is still there";
  t.fabric.set_capabilities(its, its.capability_mask & ~kIsSm);
  take_over(t.fabric, its, t.changes);
  EXPECT_EQ(t.port_of_node(2).state, PortState::Active);
  EXPECT_EQ(t.port_of_node(0).sm_lid, t.port_of_node(0).lid) << "softib is the manager again";
}

TEST(SubnetSetup, WithoutAManagerNoPortHasALid) {
  Subnet t("star:3", SubnetManagement::Programs);
  for (std::uint32_t i = 0; i < t.graph().port_count(); ++i) {
    const Port& port = *t.graph().port(i);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(port.state, port.number == 0 ? PortState::Active : PortState::Init);
  }
}

// Nodes 0 and 1, and 2 and 3, at the two ends of a cable; LIDs 1 and 2 in each subnet.
Fabric two_pairs() {
  Topology two;
  for (std::uint64_t i = 0; i < 4; ++i) {
    TopologyElement element;
    element.node_guid = 0x100 * (i + 1);
    element.description = "host" + std::to_string(i) + " HCA-1";
    element.lids = {static_cast<std::uint16_t>(i % 2 + 1)};
    two.elements.push_back(element);
  }
  two.cables = {{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}};
  Shape shape;
  shape.nodes = nodes_of(two);
  shape.topology = two;
  return *Fabric::create(shape);
}

TEST(SubnetSetup, TwoSubnetsMayHaveTheSameLids) {
  Fabric fabric = two_pairs();
  const auto port = [&](std::size_t node) -> Port& {
    return fabric.nodes()[node].hcas[0].ports[0];
  };
  EXPECT_EQ(fabric.graph().route(port(0), 2), &port(1));
  EXPECT_EQ(fabric.graph().route(port(2), 2), &port(3));
  EXPECT_EQ(fabric.graph().route(port(3), 1), &port(2));
  EXPECT_EQ(fabric.graph().set_lid(port(2), 2), Status::AlreadyExists) << "of its subnet";
}

TEST(SubnetSetup, TakesOverOneSubnetAndLeavesThoseOfOthersAlone) {
  Fabric fabric = two_pairs();
  const auto port = [&](std::size_t node) -> Port& {
    return fabric.nodes()[node].hcas[0].ports[0];
  };
  fabric.set_capabilities(port(3), port(3).capability_mask | kIsSm);
  port(2).sm_lid = port(3).sm_lid = port(3).lid;  // as that manager does
  PortChanges changes;
  port(1).sm_lid = 0x77;
  take_over(fabric, port(0), changes);
  EXPECT_EQ(port(1).sm_lid, port(0).lid);
  EXPECT_EQ(port(2).sm_lid, port(3).lid) << "a foreign manager's";
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(fabric.graph().port(changes[0].port), &port(1));
}

TEST(Tables, AreComputedForAHandThatChangesAnEntryAndNotForAManager) {
  Subnet t("fat-tree:hcas=12,ports=6");
  const Element& one = t.the_switch(0);
  const Element& other = t.the_switch(1);
  EXPECT_NE(t.graph().switch_of(one).facts.linear_top, 0) << "known before the table is";
  EXPECT_FALSE(tables_to_set(t.fabric, one).linear.empty());
  Port& manager = t.port_of_node(0);
  t.fabric.set_capabilities(manager, manager.capability_mask | kIsSm);
  EXPECT_TRUE(tables_to_set(t.fabric, other).linear.empty());
  EXPECT_TRUE(fresh_tables(t.graph(), other).linear.empty()) << "it is the manager's now";
}

TEST(NodeNames, AreThoseOfTheHosts) {
  Topology topology;
  const auto add = [&](const char* description, ElementKind kind) {
    TopologyElement& element = topology.elements.emplace_back();
    element.description = description;
    element.kind = kind;
  };
  add("alice HCA-1", ElementKind::ChannelAdapter);
  add("a switch", ElementKind::Switch);
  add("alice HCA-2", ElementKind::ChannelAdapter);
  add("MT25408 ConnectX Mellanox Technologies", ElementKind::ChannelAdapter);
  add("node0 mlx5_0", ElementKind::ChannelAdapter);
  add("17 HCA-1", ElementKind::ChannelAdapter);
  const std::vector<std::string> expected{"alice", "alice", "node1", "node0", "node2"};
  EXPECT_EQ(node_names(topology), expected);
  const std::vector<std::string> once{"alice", "node1", "node0", "node2"};
  EXPECT_EQ(nodes_of(topology), once);
}

}  // namespace
}  // namespace ib::fabric::test
