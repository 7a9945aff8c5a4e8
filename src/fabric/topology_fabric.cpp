// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fabric out of a topology: its elements, then its cables, then, if softib manages it, all that a
// subnet manager would have done.
#include "fabric/model.h"
#include "fabric/subnet_setup.h"
#include "fabric/topology/node_names.h"

namespace ib::fabric {
namespace {

void copy_identity(const TopologyElement& from, Element& to) {
  to.description = from.description;
  to.system_image_guid = from.system_image_guid;
  if (from.vendor != 0) to.vendor_id = from.vendor;
  if (from.vendor != 0) to.device_id = from.device;
}

}  // namespace

Status Fabric::build_topology(const Topology& topology, const std::vector<std::string>& nodes) {
  graph_.remove_ideal_network();
  const std::vector<std::string> names = node_names(topology);
  std::size_t adapter = 0;
  for (const TopologyElement& from : topology.elements) {
    if (from.is_switch()) {
      append_switch(from);
      continue;
    }
    Node* node = find_node(names[adapter++]);
    if (node == nullptr || nodes.size() != nodes_.size()) return Status::InvalidParameter;
    const bool fits = node->hcas.size() < kMaxHcasPerNode && from.ports <= kMaxPortsPerHca &&
                      device_ports_.size() + from.ports <= kMaxPorts;
    if (!fits) return Status::LimitExceeded;
    copy_identity(from, graph_.element_of(append_hca(*node, &from).ports[0]));
  }
  for (const TopologyCable& cable : topology.cables) {
    const auto end = [&](TopologyEnd at) {
      return graph_.port_of(graph_.element(at.element), at.port);
    };
    Port* const a = end(cable.a);
    Port* const b = end(cable.b);
    if (a == nullptr || b == nullptr) return Status::InvalidParameter;
    IB_CHECK(graph_.connect(*a, *b));
    for (Port* port : {a, b}) {
      port->width = port->best_width = cable.width;
      port->speed = port->best_speed = cable.speed;
    }
    if (!cable.is_up) a->physical_state = kDisabled;
  }
  set_up_subnets(*this, topology);
  return Status::Ok;
}

Element& Fabric::append_switch(const TopologyElement& from) {
  Element& element = graph_.append_element(ElementKind::Switch, from.node_guid);
  copy_identity(from, element);
  for (std::uint32_t p = 0; p <= from.ports; ++p) {
    graph_.append_port(end_port_guid(from, 0), verbs::LinkLayer::InfiniBand);
  }
  return element;
}

Result<Element*> Fabric::add_switch(const TopologyElement& what) {
  if (!graph_.has_room(what.ports + 1) || !has_lids(1)) return Status::LimitExceeded;
  const verbs::Gid gid = verbs::make_gid(kSubnetPrefix, end_port_guid(what, 0));
  if (graph_.find_element(what.node_guid) != nullptr || graph_.find_port(gid) != nullptr) {
    return Status::AlreadyExists;
  }
  return &append_switch(what);
}

}  // namespace ib::fabric
