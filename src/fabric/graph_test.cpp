// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/graph.h"

#include "fabric/model.h"

#include <gtest/gtest.h>

namespace ib::fabric {
namespace {

constexpr auto kInfiniBand = verbs::LinkLayer::InfiniBand;
constexpr auto kEthernet = verbs::LinkLayer::Ethernet;

// A channel adapter with two ports, a switch with three, another adapter with one.
Graph small_graph() {
  Graph graph(3, 7);
  graph.append_element(ElementKind::ChannelAdapter, 0x100);
  graph.append_port(0x101, kInfiniBand);
  graph.append_port(0x102, kInfiniBand);
  graph.append_element(ElementKind::Switch, 0x200);
  for (int i = 0; i <= 3; ++i) graph.append_port(0x200, kInfiniBand);
  graph.append_element(ElementKind::ChannelAdapter, 0x300);
  graph.append_port(0x301, kInfiniBand);
  return graph;
}

std::span<Port> ports_of(Graph& graph, std::uint64_t guid) {
  return graph.ports_of(*graph.find_element(guid));
}

TEST(Graph, ElementsAreFoundByGuidAndHaveTheirPorts) {
  Graph graph = small_graph();
  EXPECT_EQ(graph.port_count(), 7u);
  EXPECT_EQ(graph.find_element(0x101), nullptr) << "the GUID of a port";
  const Element* adapter = graph.find_element(0x100);
  ASSERT_NE(adapter, nullptr);
  EXPECT_FALSE(adapter->is_switch());
  EXPECT_EQ(adapter->port_count, 2u);
  EXPECT_EQ(adapter->first_port, 0u);
  const auto ports = graph.ports_of(*adapter);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].number, 1u);
  EXPECT_EQ(ports[1].number, 2u);
  EXPECT_EQ(&graph.element_of(ports[1]), adapter);
  EXPECT_EQ(graph.index_of(ports[1]), 1u);
}

TEST(Graph, ASwitchIsAddressedThroughItsPortZero) {
  Graph graph = small_graph();
  const Element& element = *graph.find_element(0x200);
  EXPECT_TRUE(element.is_switch());
  EXPECT_EQ(element.port_count, 3u) << "without port 0";
  EXPECT_EQ(element.hca, kNoIndex);
  const auto ports = graph.ports_of(element);
  ASSERT_EQ(ports.size(), 4u);
  EXPECT_EQ(ports[0].number, 0u);
  EXPECT_EQ(ports[0].state, verbs::PortState::Active);
  EXPECT_EQ(graph.find_port(ports[0].lid), &ports[0]);
  EXPECT_EQ(graph.find_port(ports[0].gid()), &ports[0]);
  for (const Port& port : ports.subspan(1)) {
    EXPECT_EQ(&graph.element_of(port), &element);
    EXPECT_EQ(port.guid, 0x200u) << "that of the switch";
    EXPECT_EQ(port.lid, 0);
    EXPECT_TRUE(port.gids.empty());
    EXPECT_EQ(port.state, verbs::PortState::Down);
    EXPECT_EQ(port.physical_state, kPolling);
  }
}

TEST(Graph, OfAFabricHasAnElementForEachHca) {
  const auto fabric = Fabric::create({.nodes = {"a", "b"}, .hcas_per_node = 2, .ports_per_hca = 2});
  ASSERT_TRUE(fabric);
  for (const Node& node : fabric->nodes()) {
    for (const Hca& hca : node.hcas) {
      const Element* element = fabric->graph().find_element(hca.node_guid);
      ASSERT_NE(element, nullptr);
      EXPECT_EQ(element->kind, ElementKind::ChannelAdapter);
      EXPECT_EQ(element->hca, hca.index);
      EXPECT_EQ(element->first_port, hca.first_port);
      EXPECT_EQ(fabric->graph().ports_of(*element).data(), hca.ports.data());
      EXPECT_EQ(fabric->graph().ports_of(*element).size(), hca.ports.size());
      EXPECT_EQ(fabric->hca_of(hca.ports[1]), &hca);
    }
  }
}

TEST(Graph, ALinkHasTwoEnds) {
  Graph graph = small_graph();
  Port& adapter = ports_of(graph, 0x100)[1];
  Port& of_switch = ports_of(graph, 0x200)[3];
  EXPECT_EQ(graph.peer_of(adapter), nullptr);
  ASSERT_EQ(graph.connect(adapter, of_switch), Status::Ok);
  EXPECT_EQ(graph.peer_of(adapter), &of_switch);
  EXPECT_EQ(graph.peer_of(of_switch), &adapter);
  EXPECT_EQ(graph.peer_of(ports_of(graph, 0x100)[0]), nullptr) << "another port";

  graph.disconnect(of_switch);
  EXPECT_EQ(graph.peer_of(adapter), nullptr);
  EXPECT_EQ(graph.peer_of(of_switch), nullptr);
  graph.disconnect(of_switch);
  EXPECT_EQ(graph.connect(of_switch, ports_of(graph, 0x300)[0]), Status::Ok);
}

TEST(Graph, LinksThatCannotBeAreRefused) {
  Graph graph(2, 5);
  graph.append_element(ElementKind::ChannelAdapter, 0x100);
  graph.append_port(0x101, kInfiniBand);
  graph.append_port(0x102, kInfiniBand);
  graph.append_port(0x103, kEthernet);
  graph.append_element(ElementKind::Switch, 0x200);
  graph.append_port(0x200, kInfiniBand);
  graph.append_port(0x200, kInfiniBand);
  const auto adapter = ports_of(graph, 0x100);
  const auto of_switch = ports_of(graph, 0x200);
  EXPECT_EQ(graph.connect(adapter[0], adapter[0]), Status::InvalidParameter);
  EXPECT_EQ(graph.connect(adapter[0], adapter[2]), Status::InvalidParameter) << "Ethernet";
  EXPECT_EQ(graph.connect(adapter[0], of_switch[0]), Status::InvalidParameter) << "port 0";
  ASSERT_EQ(graph.connect(adapter[0], of_switch[1]), Status::Ok);
  EXPECT_EQ(graph.connect(adapter[1], of_switch[1]), Status::AlreadyExists);
  EXPECT_EQ(graph.connect(of_switch[1], adapter[0]), Status::AlreadyExists) << "even the same one";
  EXPECT_EQ(graph.peer_of(adapter[1]), nullptr) << "a refusal changes nothing";
  EXPECT_EQ(graph.peer_of(of_switch[1]), &adapter[0]);
}

TEST(Graph, KnowsWhetherOneMoreElementFits) {
  Graph graph(2, 6);
  graph.append_element(ElementKind::Switch, 1);
  graph.append_port(1, kInfiniBand);
  EXPECT_TRUE(graph.has_room(5));
  EXPECT_FALSE(graph.has_room(6)) << "ports";
  graph.append_element(ElementKind::Switch, 2);
  EXPECT_FALSE(graph.has_room(1)) << "elements";
}

TEST(Graph, PortsReachEachOtherOnTheIdealNetworkOrOverTheirLink) {
  Graph graph(6, 6);
  for (std::uint64_t i = 1; i <= 6; ++i) {
    graph.append_element(ElementKind::ChannelAdapter, i << 8);
    graph.append_port(i << 8 | 1, i < 6 ? kInfiniBand : kEthernet);
  }
  const auto port = [&](std::uint64_t i) -> Port& { return ports_of(graph, i << 8)[0]; };
  ASSERT_EQ(graph.connect(port(2), port(4)), Status::Ok);
  const auto reach = [&](std::uint64_t a, std::uint64_t b) {
    return graph.segment_of(port(a)) == graph.segment_of(port(b));
  };
  EXPECT_TRUE(reach(2, 4));
  EXPECT_TRUE(reach(1, 3));
  EXPECT_TRUE(reach(3, 5));
  EXPECT_FALSE(reach(1, 2));
  EXPECT_FALSE(reach(4, 5));
  EXPECT_FALSE(reach(1, 6)) << "Ethernet";
  ASSERT_EQ(graph.connect(port(1), port(5)), Status::Ok);
  EXPECT_FALSE(reach(1, 2)) << "two links";
  graph.disconnect(port(2));
  EXPECT_TRUE(reach(2, 4));
  EXPECT_TRUE(reach(2, 3));
}

}  // namespace
}  // namespace ib::fabric
