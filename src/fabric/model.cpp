// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/model.h"

#include "fabric/addresses.h"

#include <algorithm>
#include <cstddef>

namespace ib::fabric {
namespace {

constexpr std::size_t kMaxNameLength = 63;  // names travel in char[64], NUL terminated

// Node names appear in paths, environment variables and lines of text.
bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != '\\'; });
}

bool are_good_links(const Shape& shape) {
  return std::ranges::all_of(shape.link_layers, [&](const HcaLinkLayer& link) {
    return link.hca < shape.hcas_per_node &&
           (link.node.empty() || std::ranges::find(shape.nodes, link.node) != shape.nodes.end());
  });
}

Status check_shape(const Shape& shape) {
  if (shape.nodes.empty() || shape.hcas_per_node == 0 || shape.ports_per_hca == 0) {
    return Status::InvalidParameter;
  }
  const bool has_topology = !shape.topology.elements.empty();
  if (shape.nodes.size() > (has_topology ? kMaxPorts : kMaxNodes) ||
      shape.hcas_per_node > kMaxHcasPerNode || shape.ports_per_hca > kMaxPortsPerHca ||
      shape.packet_life_time > kMaxPacketLifeTime) {
    return Status::LimitExceeded;
  }
  const std::size_t ports = shape.nodes.size() * shape.hcas_per_node * shape.ports_per_hca;
  if (!has_topology && ports > kMaxPorts) return Status::LimitExceeded;
  return std::ranges::all_of(shape.nodes, is_good_name) && are_good_links(shape)
             ? Status::Ok
             : Status::InvalidParameter;
}

// The room for all that the fabric can become.
struct Room {
  std::size_t hcas = 0;
  std::size_t elements = 0;
  std::size_t ports = 0;
};
Room room_for(const Shape& shape) {
  const std::size_t most_hcas = shape.nodes.size() * kMaxHcasPerNode;
  const std::size_t adapters = std::min<std::size_t>(most_hcas * shape.ports_per_hca, kMaxPorts);
  Room room{adapters / shape.ports_per_hca, adapters / shape.ports_per_hca, adapters};
  if (!shape.topology.elements.empty()) room = {kMaxPorts, kMaxPorts, kMaxPorts};
  room.elements += kMaxAddedSwitches;
  room.ports += kMaxAddedSwitchPorts;
  for (const TopologyElement& element : shape.topology.elements) {
    if (!element.is_switch()) continue;
    ++room.elements;
    room.ports += element.ports + 1;
  }
  return room;
}

}  // namespace

Result<Fabric> Fabric::create(const Shape& shape) {
  IB_CHECK(check_shape(shape));
  Fabric fabric(shape);
  IB_CHECK(fabric.build(shape));
  return fabric;
}

// Has room for all that the fabric can become, so that nothing ever moves. Unused room costs
// address space only.
Fabric::Fabric(const Shape& shape)
    : graph_(room_for(shape).elements, room_for(shape).ports),
      managers_{shape.management},
      new_hca_{shape.ports_per_hca, shape.link_layer, shape.link_layers},
      packet_life_time_(shape.packet_life_time),
      address_block_(shape.addresses) {
  nodes_.reserve(shape.nodes.size());
  hcas_.reserve(room_for(shape).hcas);
}

Status Fabric::build(const Shape& shape) {
  for (const std::string& name : shape.nodes) {
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    if (!node_by_name_.emplace(name, index).second) return Status::InvalidParameter;
    append_node(name);
  }
  if (!shape.topology.elements.empty()) return build_topology(shape.topology, shape.nodes);
  for (Node& node : nodes_) {
    for (std::uint32_t h = 0; h < shape.hcas_per_node; ++h) append_hca(node);
  }
  return Status::Ok;
}

void Fabric::append_node(const std::string& name) {
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.addresses = default_addresses(node);
  node_by_address_.emplace(node.addresses[0].ip, static_cast<std::uint32_t>(nodes_.size() - 1));
}

Hca& Fabric::append_hca(Node& node, const TopologyElement* from) {
  const auto position = static_cast<std::uint32_t>(&node - nodes_.data());
  const auto number = static_cast<std::uint32_t>(node.hcas.size());
  IB_ASSERT(hcas_.size() < hcas_.capacity());
  Hca& hca = hcas_.emplace_back();
  hca.name = "softib" + std::to_string(number);
  hca.index = static_cast<std::uint32_t>(hcas_.size() - 1);
  hca.node = position;
  hca.node_guid = from != nullptr ? from->node_guid : position_guid(position, number, 0);
  const verbs::LinkLayer link_layer =
      from != nullptr ? verbs::LinkLayer::InfiniBand : link_layer_of(node, number);
  const bool is_ethernet = link_layer == verbs::LinkLayer::Ethernet;
  Element& element = graph_.append_element(ElementKind::ChannelAdapter, hca.node_guid);
  element.hca = hca.index;
  element.description = from != nullptr ? from->description : node.name + " " + hca.name;
  const std::uint32_t ports = from != nullptr ? from->ports : new_hca_.ports;
  hca.first_port = static_cast<std::uint32_t>(device_ports_.size());
  for (std::uint32_t p = 1; p <= ports; ++p) {
    const std::uint64_t guid =
        from != nullptr ? end_port_guid(*from, p - 1)
                        : (is_ethernet ? ethernet_guid : position_guid)(position, number, p);
    Port& port = graph_.append_port(guid, link_layer);
    port.device_index = static_cast<std::uint32_t>(device_ports_.size());
    device_ports_.push_back(graph_.index_of(port));
  }
  hca.ports = graph_.ports_of(element);
  node.hcas.hcas_.push_back(&hca);
  if (is_ethernet) give_addresses(node, hca);
  return hca;
}

verbs::LinkLayer Fabric::link_layer_of(const Node& node, std::uint32_t hca) const {
  verbs::LinkLayer layer = new_hca_.link_layer;
  for (const HcaLinkLayer& link : new_hca_.link_layers) {
    if (link.hca == hca && (link.node.empty() || link.node == node.name)) layer = link.link_layer;
  }
  return layer;
}

Result<Hca*> Fabric::add_hca(Node& node) {
  if (node.hcas.size() >= kMaxHcasPerNode || !has_lids(new_hca_.ports) ||
      hcas_.size() == hcas_.capacity()) {
    return Status::LimitExceeded;
  }
  Hca& hca = append_hca(node);
  hca.present = false;  // until its driver has started it
  return &hca;
}

bool Fabric::has_lids(std::size_t ports) const {
  return device_ports_.size() + graph_.switch_count() + ports <= kMaxPorts;
}

const Node* Fabric::find_node(std::string_view name) const {
  if (name.empty()) return nodes_.empty() ? nullptr : &nodes_.front();
  const auto found = node_by_name_.find(name);
  return found == node_by_name_.end() ? nullptr : &nodes_[found->second];
}

Node* Fabric::find_node(std::string_view name) {
  return const_cast<Node*>(static_cast<const Fabric&>(*this).find_node(name));
}

const Hca* Fabric::find_hca(std::uint32_t index) const {
  return index < hcas_.size() ? &hcas_[index] : nullptr;
}

Hca* Fabric::find_hca(std::uint32_t index) {
  return const_cast<Hca*>(static_cast<const Fabric&>(*this).find_hca(index));
}

const Hca* Fabric::find_hca_by_guid(const Node& node, std::uint64_t guid) const {
  const Element* element = graph_.find_element(guid);
  if (element == nullptr || element->hca == kNoIndex) return nullptr;
  const Hca& hca = hcas_[element->hca];
  return &node_of(hca) == &node ? &hca : nullptr;
}

const Port* Fabric::device_port(std::uint32_t index) const {
  return index < device_ports_.size() ? graph_.port(device_ports_[index]) : nullptr;
}

bool Fabric::is_managed_here(const Port& port) const {
  if (managers_.management != SubnetManagement::Softib) return false;
  return std::ranges::none_of(managers_.ports, [&](std::uint32_t manager) {
    return graph_.subnet_of(*graph_.port(manager)) == graph_.subnet_of(port);
  });
}

void Fabric::set_capabilities(Port& port, std::uint32_t mask) {
  port.capability_mask = mask;
  std::erase(managers_.ports, graph_.index_of(port));
  if ((mask & kIsSm) != 0) managers_.ports.push_back(graph_.index_of(port));
}

}  // namespace ib::fabric
