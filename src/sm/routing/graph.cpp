// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/graph.h"

#include "sm/subnet/subnet.h"

namespace ib::sm {
namespace {

// Where an end port is joined to the switches, and by which of their ports.
const Port* place_of(const Subnet& subnet, const Port& end) {
  if (subnet.node_of(end).is_switch()) return &end;
  if (end.peer == kNone) return nullptr;
  const Port& at = subnet.port(end.peer);
  return subnet.node_of(at).is_switch() ? &at : nullptr;
}

}  // namespace

Graph make_graph(const Subnet& subnet, std::vector<std::uint32_t>& node_of) {
  Graph graph;
  node_of.clear();
  std::vector<std::uint32_t> switch_of(subnet.nodes().size(), kNone);
  for (std::uint32_t i = 0; i < subnet.nodes().size(); ++i) {
    const Node& node = subnet.node(i);
    if (!node.is_there || !node.is_switch()) continue;
    switch_of[i] = static_cast<std::uint32_t>(node_of.size());
    node_of.push_back(i);
  }
  graph.switches.resize(node_of.size());
  for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
    const Port& port = subnet.port(i);
    if (switch_of[port.node] != kNone && port.peer != kNone && i < port.peer) {
      const Port& peer = subnet.port(port.peer);
      if (switch_of[peer.node] != kNone) {
        graph.add_link(switch_of[port.node], port.number, switch_of[peer.node], peer.number);
      }
    }
    if (port.lid == 0 || !subnet.is_end_port(port) || !subnet.is_served(port)) continue;
    const Port* at = place_of(subnet, port);
    if (at == nullptr) continue;
    graph.add_destination(switch_of[at->node],
                          {port.lid, static_cast<std::uint16_t>(1u << port.lmc), at->number});
  }
  graph.finish();
  return graph;
}

}  // namespace ib::sm
