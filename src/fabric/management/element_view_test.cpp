// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/management/element_view.h"

#include "mad/smp.h"
#include "verbs/limits.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace ib::fabric {
namespace {

constexpr std::uint64_t kSwitchGuid = 0x200;

// The answer of a port's agent to a Get.
template <class Attribute>
Attribute get(const Graph& graph, const Port& port, std::uint16_t attribute,
              std::uint32_t modifier = 0) {
  mad::Smp smp;
  smp.header = {mad::kBaseVersion,
                mad::mgmt_class::kSubnLid,
                mad::kClassVersion,
                mad::method::kGet,
                0,
                0,
                0x77,
                attribute,
                0,
                modifier};
  mad::Mad answer{};
  const ElementView view(graph, graph.element_of(port));
  const auto number = static_cast<std::uint8_t>(port.number);
  EXPECT_EQ(mad::answer(view, number, std::bit_cast<mad::Mad>(smp), answer).verdict,
            mad::Verdict::Answered);
  const auto response = std::bit_cast<mad::Smp>(answer);
  EXPECT_EQ(response.header.status, 0);
  Attribute result;
  std::memcpy(static_cast<void*>(&result), response.data.data(), sizeof result);
  return result;
}

Graph switch_and_adapter() {
  Graph graph(2, 6);
  graph.append_element(ElementKind::Switch, kSwitchGuid);
  for (int i = 0; i <= 3; ++i) graph.append_port(kSwitchGuid, verbs::LinkLayer::InfiniBand);
  graph.append_element(ElementKind::ChannelAdapter, 0x300);
  graph.append_port(0x301, verbs::LinkLayer::InfiniBand);
  graph.append_port(0x302, verbs::LinkLayer::InfiniBand).pkeys = {0xffff, 0x8001};
  return graph;
}

TEST(ElementView, ASwitchAnswersAtItsPortZero) {
  const Graph graph = switch_and_adapter();
  const auto ports = graph.ports_of(*graph.find_element(kSwitchGuid));
  const auto node = get<mad::NodeInfo>(graph, ports[0], mad::smp_attribute::kNodeInfo);
  EXPECT_EQ(node.node_type, 2);
  EXPECT_EQ(node.num_ports, 3);
  EXPECT_EQ(node.local_port, 0);
  EXPECT_EQ(node.node_guid, kSwitchGuid);
  EXPECT_EQ(node.port_guid, kSwitchGuid);
  EXPECT_EQ(node.partition_cap, verbs::limits::kMaxPkeys);
  const auto port = get<mad::PortInfo>(graph, ports[0], mad::smp_attribute::kPortInfo);
  EXPECT_EQ(port.lid, ports[0].lid);
  EXPECT_EQ(port.local_port, 0);
  EXPECT_EQ(port.speed_supported_state & 15, static_cast<int>(verbs::PortState::Active));
  EXPECT_NE(port.guid_cap, 0);
}

TEST(ElementView, AnotherPortOfASwitchHasItsGuidAndNoAddress) {
  const Graph graph = switch_and_adapter();
  const Port& port = graph.ports_of(*graph.find_element(kSwitchGuid))[2];
  const auto node = get<mad::NodeInfo>(graph, port, mad::smp_attribute::kNodeInfo);
  EXPECT_EQ(node.node_type, 2);
  EXPECT_EQ(node.local_port, 2);
  EXPECT_EQ(node.port_guid, kSwitchGuid);
  const auto info = get<mad::PortInfo>(graph, port, mad::smp_attribute::kPortInfo, 2);
  EXPECT_EQ(info.lid, 0);
  EXPECT_EQ(info.guid_cap, 0);
  EXPECT_EQ(info.speed_supported_state & 15, static_cast<int>(verbs::PortState::Down));
  EXPECT_EQ(info.physical_down_default >> 4, kPolling);
}

// OpenSM wants it of those ports only that say so.
TEST(ElementView, PortsSayThatTheirClientsReregister) {
  constexpr std::uint32_t kClientReregistration = 1u << 25;
  const Graph graph = switch_and_adapter();
  const Port& port = graph.ports_of(*graph.find_element(0x300))[0];
  const auto info = get<mad::PortInfo>(graph, port, mad::smp_attribute::kPortInfo);
  EXPECT_NE(info.capability_mask & kClientReregistration, 0u);
}

// OpenSM writes no tables to a port that does not say that it has them.
TEST(ElementView, PortsSayThatTheyHaveTablesOfServiceLevels) {
  constexpr std::uint32_t kSlMapping = 1u << 6;
  const Graph graph = switch_and_adapter();
  for (const std::uint64_t guid : {kSwitchGuid, std::uint64_t{0x300}}) {
    const Port& port = graph.ports_of(*graph.find_element(guid))[0];
    const auto info = get<mad::PortInfo>(graph, port, mad::smp_attribute::kPortInfo);
    EXPECT_NE(info.capability_mask & kSlMapping, 0u) << guid;
    const auto table =
        get<std::array<std::uint8_t, 8>>(graph, port, mad::smp_attribute::kSlToVlTable);
    EXPECT_EQ(table[0], 0x01);
  }
}

TEST(ElementView, AChannelAdapterTellsOfItsPkeyTables) {
  const Graph graph = switch_and_adapter();
  const Port& port = graph.ports_of(*graph.find_element(0x300))[0];
  const auto node = get<mad::NodeInfo>(graph, port, mad::smp_attribute::kNodeInfo);
  EXPECT_EQ(node.node_type, 1);
  EXPECT_EQ(node.num_ports, 2);
  EXPECT_EQ(node.local_port, 1);
  EXPECT_EQ(node.port_guid, 0x301u);
  EXPECT_EQ(node.partition_cap, verbs::limits::kMaxPkeys) << "a manager may fill it";
}

}  // namespace
}  // namespace ib::fabric
