// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The work of a subnet manager without its packets: first when a fabric is made, then when the last
// manager of a subnet has gone. Tables wait until somebody reads them.
#include "fabric/subnet_setup.h"

#include "fabric/forwarding/min_hop.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace ib::fabric {
namespace {

using verbs::PortState;

bool is_end_port(const Graph& graph, const Port& port) {
  return &graph.end_port_of(port) == &port;
}

// The LIDs of the topology, then free ones for those that have none; or none at all.
void give_lids(Fabric& fabric, const Topology& topology) {
  Graph& graph = fabric.graph();
  for (std::uint32_t e = 0; e < graph.element_count(); ++e) {
    const Element& element = graph.element(e);
    const auto ports = graph.ports_of(element);
    const auto& lids = topology.elements[e].lids;
    for (std::uint32_t i = 0; i < topology.elements[e].end_ports(); ++i) {
      const bool is_given = fabric.is_managed_here(ports[i]) && i < lids.size();
      graph.take_lid(ports[i], is_given ? lids[i] : std::uint16_t{0},
                     is_given ? topology.elements[e].lmc : std::uint8_t{0});
      if (!fabric.is_managed_here(ports[i])) ports[i].sm_lid = 0;
    }
  }
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    Port& port = *graph.port(i);
    if (is_end_port(graph, port) && port.lid == 0 && fabric.is_managed_here(port)) {
      graph.give_free_lid(port);
    }
  }
}

// The first states of the ends of a cable.
void set_link_state(Fabric& fabric, Port& port) {
  Graph& graph = fabric.graph();
  const Port* peer = graph.peer_of(port);
  if (port.physical_state == kDisabled) port.state = PortState::Down;
  if (port.number == 0 || port.physical_state == kDisabled) return;
  const bool is_up = peer != nullptr && peer->physical_state != kDisabled;
  port.physical_state = is_up ? kLinkUp : kPolling;
  const PortState up = fabric.is_managed_here(port) ? PortState::Active : PortState::Init;
  port.state = is_up ? up : PortState::Down;
}

// The highest LID of each subnet.
std::unordered_map<std::uint32_t, std::uint16_t> top_lids(const Graph& graph) {
  std::unordered_map<std::uint32_t, std::uint16_t> tops;
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    const Port& port = *graph.port(i);
    if (port.lid == 0 || port.is_ethernet()) continue;
    std::uint16_t& top = tops[graph.subnet_of(port)];
    top = std::max(top, static_cast<std::uint16_t>(port.lid + (1u << port.lmc) - 1));
  }
  return tops;
}

// Tables of a subnet, or of all (kNoIndex), are out of date. Their size is known.
void mark_tables_stale(Fabric& fabric, std::uint32_t only_subnet) {
  Graph& graph = fabric.graph();
  const auto tops = top_lids(graph);
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    const Element& element = graph.element(i);
    if (!element.is_switch()) continue;
    const std::uint32_t subnet = graph.subnet_of(*graph.port(element.first_port));
    if (only_subnet != kNoIndex && subnet != only_subnet) continue;
    Switch& tables = graph.switch_of(element);
    tables.is_stale = true;
    const auto top = tops.find(subnet);
    tables.facts.linear_top = top != tops.end() ? top->second : std::uint16_t{0};
    graph.mark_forwarding(element);
  }
}

}  // namespace

void set_up_subnets(Fabric& fabric, const Topology& topology) {
  Graph& graph = fabric.graph();
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) set_link_state(fabric, *graph.port(i));
  graph.refresh_segments();
  give_lids(fabric, topology);
  if (graph.port_count() == 0 || !fabric.is_managed_here(*graph.port(0))) return;
  graph.place_managers();
  mark_tables_stale(fabric, kNoIndex);
}

namespace {

// A port that has a LID of a port before it, as when two subnets become one, gets another.
class LidsInUse {
 public:
  bool has_any_of(const Port& port) const {
    for (std::uint32_t lid = port.lid; lid < port.lid + (1u << port.lmc); ++lid) {
      if (used_[lid]) return true;
    }
    return false;
  }
  void add(const Port& port) {
    for (std::uint32_t lid = port.lid; lid < port.lid + (1u << port.lmc); ++lid) used_[lid] = true;
  }

 private:
  static constexpr std::uint32_t kMostOfOnePort = 128;
  std::vector<bool> used_ = std::vector<bool>(kLastUnicastLid + 1 + kMostOfOnePort);
};

}  // namespace

void take_over(Fabric& fabric, const Port& port, PortChanges& changes) {
  Graph& graph = fabric.graph();
  if (!fabric.is_managed_here(port)) return;
  const std::uint32_t subnet = graph.subnet_of(port);
  LidsInUse used;
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    Port& each = *graph.port(i);
    if (graph.subnet_of(each) != subnet || each.is_ethernet()) continue;
    if (is_end_port(graph, each)) {
      if (each.lid == 0 || used.has_any_of(each)) {
        graph.give_free_lid(each);
        changes.push_back({i, change::kLid, PortState::Nop});
      }
      used.add(each);
    }
    if (each.state == PortState::Init || each.state == PortState::Armed) {
      advance(fabric, each, PortState::Active, changes);
    }
  }
  for (const std::uint32_t i : graph.place_managers(subnet)) {
    if (!is_end_port(graph, *graph.port(i))) continue;
    changes.push_back({i, change::kManager | change::kReregister, PortState::Nop});
  }
  mark_stale(fabric, port);
}

void mark_stale(Fabric& fabric, const Port& port) {
  mark_tables_stale(fabric, fabric.graph().subnet_of(port));
}

// Nobody can see that they are computed late: no reader has had others before.
const Switch& fresh_tables(const Graph& graph, const Element& element) {
  return fresh_tables(const_cast<Graph&>(graph), element);
}

Switch& fresh_tables(Graph& graph, const Element& element) {
  Switch& tables = graph.switch_of(element);
  if (tables.is_stale) {
    tables.is_stale = false;
    fill_by_fewest_hops(graph, element);
  }
  return tables;
}

Switch& tables_to_set(Fabric& fabric, const Element& element) {
  Graph& graph = fabric.graph();
  if (fabric.is_managed_here(*graph.port(element.first_port))) return fresh_tables(graph, element);
  Switch& tables = graph.switch_of(element);
  tables.is_stale = false;
  return tables;
}

}  // namespace ib::fabric
