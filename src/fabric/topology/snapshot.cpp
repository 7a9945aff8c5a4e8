// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/topology/snapshot.h"

#include <vector>

namespace ib::fabric {
namespace {

TopologyElement element_of(const Graph& graph, const Element& from) {
  TopologyElement to;
  to.kind = from.kind;
  to.node_guid = from.node_guid;
  to.description = from.description;
  to.ports = from.port_count;
  to.system_image_guid = from.system_image_guid != 0 ? from.system_image_guid : from.node_guid;
  to.vendor = from.vendor_id;
  to.device = from.device_id;
  const auto ports = graph.ports_of(from);
  to.lmc = ports.front().lmc;
  for (std::uint32_t i = 0; i < to.end_ports(); ++i) {
    to.port_guids.push_back(ports[i].guid);
    to.lids.push_back(ports[i].lid);
  }
  return to;
}

// Of an InfiniBand element that is there.
bool is_shown(const Fabric& fabric, const Element& element) {
  const Hca* hca = fabric.find_hca(element.hca);
  if (element.is_gone) return false;
  return hca == nullptr || (hca->present && !hca->ports.front().is_ethernet());
}

}  // namespace

Topology snapshot_of(const Fabric& fabric) {
  const Graph& graph = fabric.graph();
  Topology topology;
  std::vector<std::uint32_t> places(graph.element_count(), kNoIndex);
  for (std::uint32_t i = 0; i < graph.element_count(); ++i) {
    if (!is_shown(fabric, graph.element(i))) continue;
    places[i] = static_cast<std::uint32_t>(topology.elements.size());
    topology.elements.push_back(element_of(graph, graph.element(i)));
  }
  for (std::uint32_t i = 0; i < graph.port_count(); ++i) {
    const Port& port = *graph.port(i);
    const Port* peer = graph.peer_of(port);
    if (peer == nullptr || graph.index_of(*peer) < i) continue;
    if (places[port.element] == kNoIndex || places[peer->element] == kNoIndex) continue;
    const bool is_up = port.physical_state == kLinkUp && peer->physical_state == kLinkUp;
    topology.cables.push_back({{places[port.element], port.number},
                               {places[peer->element], peer->number},
                               port.width,
                               port.speed,
                               is_up});
  }
  return topology;
}

}  // namespace ib::fabric
