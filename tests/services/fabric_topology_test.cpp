// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fabric as the subnet administrator reads it.
#include "services/sa/fabric_topology.h"

#include "fabric/management/subnet_test.h"
#include "fabric/subnet_setup.h"
#include "sa/records/header.h"
#include "sa/server/server.h"
#include "verbs/limits.h"

#include <gtest/gtest.h>

namespace ib::services::test {
namespace {

namespace smp = mad::smp_attribute;

TEST(FabricTopologyTest, PathsHaveThePacketLifeTimeOfTheFabric) {
  const auto fabric = fabric::Fabric::create({.nodes = {"a", "b"}, .packet_life_time = 9});
  ASSERT_TRUE(fabric);
  const FabricTopology topology(*fabric);
  const sa::EndPort from = *topology.port(0);
  const sa::EndPort to = *topology.port(1);
  const auto route = topology.route(from, from.lid, to, to.lid);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->life, 9);
}

TEST(FabricTopologyTest, AttributesAreThoseOfTheAgent) {
  auto fabric = *fabric::Fabric::create({.nodes = {"a"}});
  fabric.find_hca(0)->ports[0].pkeys = {0xffff, 0x8001, 0x8002};
  const FabricTopology topology(fabric);
  const sa::NodePort port = *topology.node_port(*topology.port(0), 1);
  EXPECT_EQ(port.pkeys.size(), 3u);
  mad::NodeInfo info;
  std::memcpy(&info, topology.attribute(port, smp::kNodeInfo, 0)->data(), sizeof info);
  EXPECT_EQ(info.partition_cap, verbs::limits::kMaxPkeys);
  EXPECT_EQ(info.port_guid, fabric.find_hca(0)->ports[0].guid);
  EXPECT_FALSE(topology.attribute(port, smp::kSwitchInfo, 0));
}

// Two leaves with two adapters each are enough: nodes 0 and 7 are at different ones.
class FabricTopologyInSubnet : public testing::Test {
 protected:
  sa::EndPort end(fabric::Port& port) { return *topology.port(subnet.graph().index_of(port)); }
  std::optional<sa::Route> route() {
    return topology.route(end(here), here.lid, end(there), there.lid);
  }
  const fabric::Element& leaf() { return graph.element_of(*graph.peer_of(here)); }
  fabric::Port& way_up() {
    return *graph.port_of(leaf(), fabric::fresh_tables(graph, leaf()).port_to(there.lid));
  }

  fabric::test::Subnet subnet{"fat-tree:levels=2,ports=4"};
  fabric::Graph& graph = subnet.graph();
  fabric::Port& here = subnet.port_of_node(0);
  fabric::Port& there = subnet.port_of_node(7);
  FabricTopology topology{subnet.fabric};
};

TEST_F(FabricTopologyInSubnet, APathIsWhereTheTablesLead) {
  ASSERT_TRUE(route());
  EXPECT_TRUE(route()->reversible);
  fabric::fresh_tables(graph, leaf()).set_linear(here.lid, fabric::kNoPort);
  ASSERT_TRUE(route());
  EXPECT_FALSE(route()->reversible) << "nothing comes back";
  fabric::fresh_tables(graph, leaf()).set_linear(there.lid, fabric::kNoPort);
  EXPECT_FALSE(route());
  fabric::fresh_tables(graph, leaf()).set_linear(there.lid, 0);
  EXPECT_FALSE(route()) << "it ends in the switch";
}

TEST_F(FabricTopologyInSubnet, ACircleIsNoPath) {
  fabric::Port& up = way_up();
  const fabric::Port& down = *graph.peer_of(up);
  fabric::fresh_tables(graph, graph.element_of(down))
      .set_linear(there.lid, static_cast<std::uint8_t>(down.number));
  EXPECT_FALSE(route());
}

TEST_F(FabricTopologyInSubnet, TheWeakestLinkOfTheWayDecides) {
  way_up().mtu = verbs::Mtu::B1024;
  EXPECT_EQ(route()->mtu, static_cast<std::uint8_t>(verbs::Mtu::B1024));
  fabric::Port& far_end = *graph.peer_of(way_up());
  far_end.width = 1;
  far_end.speed = 1;
  EXPECT_EQ(route()->rate, 2) << "2.5 Gb/s";
  way_up().state = verbs::PortState::Init;
  EXPECT_FALSE(route());
}

// To compute those of all switches takes seconds in a large subnet.
TEST_F(FabricTopologyInSubnet, RecordsOfPortsLeaveTheTablesOutOfDate) {
  fabric::Switch& tables = graph.switch_of(graph.element_of(*graph.peer_of(here)));
  fabric::mark_stale(subnet.fabric, here);
  ASSERT_TRUE(tables.is_stale);
  const sa::NodePort port = *topology.peer(*topology.node_port(end(here), 1));
  EXPECT_TRUE(topology.attribute(port, smp::kPortInfo, port.number));
  EXPECT_TRUE(topology.attribute(port, smp::kPkeyTable, std::uint32_t{port.number} << 16));
  EXPECT_TRUE(topology.attribute(port, smp::kMulticastForwarding, 0));
  EXPECT_TRUE(tables.is_stale);
  EXPECT_TRUE(topology.attribute(port, smp::kLinearForwarding, 0));
  EXPECT_FALSE(tables.is_stale);
}

TEST_F(FabricTopologyInSubnet, SwitchesHavePathsToo) {
  const sa::EndPort at = end(graph.end_port_of(way_up()));
  EXPECT_TRUE(at.is_switch());
  EXPECT_EQ(at.others, 4);
  EXPECT_TRUE(topology.route(at, at.lid, end(there), there.lid));
  EXPECT_TRUE(topology.route(end(there), there.lid, at, at.lid));
  EXPECT_TRUE(topology.route(at, at.lid, at, at.lid));
}

TEST_F(FabricTopologyInSubnet, APortHasThePeerAtTheOtherEndOfItsLink) {
  const sa::NodePort port = *topology.node_port(end(here), 1);
  const std::optional<sa::NodePort> peer = topology.peer(port);
  ASSERT_TRUE(peer);
  EXPECT_TRUE(peer->end.is_switch());
  EXPECT_EQ(peer->number, graph.peer_of(here)->number);
  EXPECT_EQ(topology.peer(*peer)->end.lid, here.lid);
  EXPECT_FALSE(topology.node_port(end(here), 2));
  EXPECT_FALSE(topology.node_port(peer->end, 5));
  fabric::set_enabled(subnet.fabric, *graph.peer_of(here), false, subnet.changes);
  EXPECT_FALSE(topology.peer(*topology.node_port(peer->end, peer->number)));
}

TEST_F(FabricTopologyInSubnet, AnyLidOfAPortNamesIt) {
  graph.take_lid(here, 0x40, 2);
  for (const bool is_seen : {false, true}) {
    topology.look_from(is_seen ? &there : nullptr);
    EXPECT_EQ(topology.find_lid(0x43)->lid, 0x40);
    EXPECT_EQ(topology.find_lid(0x43)->lmc, 2);
    EXPECT_FALSE(topology.find_lid(0x44));
  }
}

TEST_F(FabricTopologyInSubnet, PortsThatAreNotReachedAreOfAnotherSubnet) {
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    const fabric::Port& port = *graph.port(i);
    if (port.number == 0 || graph.peer_of(port) == nullptr) continue;
    if (graph.element_of(*graph.peer_of(port)).is_switch() && graph.element_of(port).is_switch()) {
      graph.disconnect(port);
    }
  }
  topology.look_from(&here);
  EXPECT_TRUE(topology.find_lid(here.lid));
  EXPECT_FALSE(topology.find_lid(there.lid));
  EXPECT_FALSE(topology.find_gid(there.gid()));
  topology.look_from(nullptr);
  EXPECT_TRUE(topology.find_lid(there.lid));
}

TEST_F(FabricTopologyInSubnet, TheManagerIsTheOneThatPortsName) {
  const auto managers = topology.managers();
  ASSERT_EQ(managers.size(), 1u);
  EXPECT_EQ(managers[0].lid, there.sm_lid);
  EXPECT_EQ(managers[0].state, sa::kMasterState);
}

struct Facts final : ManagerView {
  std::uint8_t service_level(const fabric::Port& from, const fabric::Port& to) const override {
    return from.lid < to.lid ? 3 : 4;
  }
  std::vector<sa::SmInfoRecord> managers(const fabric::Port& port) const override {
    return {{port.lid, 1, 0, 2, 3, sa::kMasterState}, {port.lid, 4, 0, 5, 6, 2}};
  }
};
TEST_F(FabricTopologyInSubnet, AnEmbeddedManagerGivesLevelsAndManagers) {
  const Facts facts;
  topology.set_manager_view(&facts);
  EXPECT_EQ(route()->sl, 3);
  EXPECT_EQ(topology.managers().size(), 2u);
}

TEST_F(FabricTopologyInSubnet, TheServerHasARecordOfEverything) {
  sa::Server server(topology, {.sm_key = 1});
  const auto count = [&](std::uint16_t attribute) {
    sa::Request request;
    request.lid = here.lid;
    request.method = sa::method::kGetTable;
    request.attribute = attribute;
    request.sm_key = 1;
    return server.handle(request, Instant{})->count;
  };
  // 8 adapters; 6 switches of 4 ports; 16 cables.
  EXPECT_EQ(count(sa::attribute::kNodeRecord), 14u);
  EXPECT_EQ(count(sa::attribute::kPortInfoRecord), 8u + 6 * 5);
  EXPECT_EQ(count(sa::attribute::kLinkRecord), 32u);
  EXPECT_EQ(count(sa::attribute::kSwitchInfoRecord), 6u);
  EXPECT_EQ(count(sa::attribute::kLinearForwardingRecord), 6u);
  EXPECT_EQ(count(sa::attribute::kPkeyTableRecord), 8u * 1 + 6 * 5);
  EXPECT_EQ(count(sa::attribute::kSlToVlRecord), 8u + 6 * 25);
  EXPECT_EQ(count(sa::attribute::kVlArbitrationRecord), 4u * (8 + 6 * 5));
  EXPECT_EQ(count(sa::attribute::kGuidInfoRecord), 14u * 2);
  EXPECT_EQ(count(sa::attribute::kSmInfoRecord), 1u);
  EXPECT_EQ(count(sa::attribute::kPathRecord), 14u * 14);
}

}  // namespace
}  // namespace ib::services::test
