// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/graph.h"

#include "sm/subnet/subnet.h"

namespace ib::sm {
namespace {

// By node; kNone: it is no switch of the graph.
std::vector<std::uint32_t> switches_by_node(const Subnet& subnet,
                                            const std::vector<std::uint32_t>& node_of) {
  std::vector<std::uint32_t> switch_of(subnet.nodes().size(), kNone);
  for (std::uint32_t i = 0; i < node_of.size(); ++i) switch_of[node_of[i]] = i;
  return switch_of;
}

void add_end_port(const Subnet& subnet, const Port& end, std::uint8_t at, GraphSwitch& to) {
  if (end.lid == 0 || !subnet.is_served(end)) return;
  to.add_destination({end.lid, static_cast<std::uint16_t>(1u << end.lmc), at});
}

GraphSwitch make_switch(const Subnet& subnet, const std::vector<std::uint32_t>& switch_of,
                        const Node& node) {
  GraphSwitch made;
  if (!node.is_there) return made;
  const std::uint32_t own = switch_of[subnet.port(node.first_port).node];
  made.links.reserve(node.port_count);
  made.neighbors.reserve(node.port_count);
  add_end_port(subnet, subnet.port(node.first_port), 0, made);
  for (std::uint32_t i = node.first_port + 1; i < node.first_port + node.port_count; ++i) {
    const Port& port = subnet.port(i);
    if (port.peer == kNone) continue;
    const Port& peer = subnet.port(port.peer);
    const std::uint32_t to = switch_of[peer.node];
    if (to == kNone) {
      add_end_port(subnet, peer, port.number, made);
    } else if (to != own) {  // no way leads over a link to itself
      made.links.push_back({to, port.number, peer.number});
    }
  }
  made.finish();
  return made;
}

void add_change(const GraphSwitch& before, const GraphSwitch& now, std::uint32_t at,
                std::optional<GraphChange>& change) {
  if (!change || before == now) return;
  change->is_any = true;
  const bool has_other = !std::ranges::includes(before.links, now.links);
  if (has_other || (now.has_adapters && !before.has_adapters)) return change.reset();
  if (before.links.size() != now.links.size()) change->ends.push_back(at);
  const bool has_more = std::ranges::any_of(now.destinations, [&](const Destination& destination) {
    return std::ranges::find(before.destinations, destination) == before.destinations.end();
  });
  if (has_more) change->arrivals.push_back(at);
}

}  // namespace

Graph make_graph(const Subnet& subnet, bool keeps_gone, std::vector<std::uint32_t>& node_of) {
  std::vector<bool> is_kept(subnet.nodes().size());
  if (keeps_gone) {
    for (const std::uint32_t node : node_of) is_kept[node] = true;
  }
  node_of.clear();
  for (std::uint32_t i = 0; i < subnet.nodes().size(); ++i) {
    const Node& node = subnet.node(i);
    if (node.is_switch() && (node.is_there || is_kept[i])) node_of.push_back(i);
  }
  const auto switch_of = switches_by_node(subnet, node_of);
  Graph graph;
  for (const std::uint32_t node : node_of) {
    graph.switches.push_back(make_switch(subnet, switch_of, subnet.node(node)));
    for (const Destination& destination : graph.switches.back().destinations) {
      graph.top_lid = std::max(graph.top_lid, destination.last());
    }
  }
  return graph;
}

std::optional<GraphChange> change_between(const Graph& before, const Graph& now) {
  if (before.size() != now.size()) return std::nullopt;
  std::optional<GraphChange> change(std::in_place);
  for (std::uint32_t i = 0; i < now.size(); ++i) {
    add_change(before.switches[i], now.switches[i], i, change);
  }
  return change;
}

std::optional<GraphChange> update_graph(const Subnet& subnet,
                                        const std::vector<std::uint32_t>& node_of,
                                        std::span<const std::uint32_t> nodes, Graph& graph) {
  const auto switch_of = switches_by_node(subnet, node_of);
  std::optional<GraphChange> change(std::in_place);
  for (const std::uint32_t node : nodes) {
    const std::uint32_t at = switch_of[node];
    if (at == kNone) continue;
    GraphSwitch now = make_switch(subnet, switch_of, subnet.node(node));
    add_change(graph.switches[at], now, at, change);
    for (const Destination& destination : now.destinations) {
      graph.top_lid = std::max(graph.top_lid, destination.last());
    }
    graph.switches[at] = std::move(now);
  }
  return change;
}

}  // namespace ib::sm
