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

Status check(const Shape& shape) {
  if (shape.nodes.empty() || shape.hcas_per_node == 0 || shape.ports_per_hca == 0) {
    return Status::InvalidParameter;
  }
  if (shape.nodes.size() > kMaxNodes || shape.hcas_per_node > kMaxHcasPerNode ||
      shape.ports_per_hca > kMaxPortsPerHca || shape.packet_life_time > kMaxPacketLifeTime) {
    return Status::LimitExceeded;
  }
  const std::size_t ports = shape.nodes.size() * shape.hcas_per_node * shape.ports_per_hca;
  if (ports > kMaxPorts) return Status::LimitExceeded;
  const bool good =
      std::all_of(shape.nodes.begin(), shape.nodes.end(), is_good_name) &&
      std::all_of(shape.link_layers.begin(), shape.link_layers.end(),
                  [&](const HcaLinkLayer& link) {
                    return link.hca < shape.hcas_per_node &&
                           (link.node.empty() || std::find(shape.nodes.begin(), shape.nodes.end(),
                                                           link.node) != shape.nodes.end());
                  });
  return good ? Status::Ok : Status::InvalidParameter;
}

std::size_t most_ports(const Shape& shape) {
  return std::min<std::size_t>(shape.nodes.size() * kMaxHcasPerNode * shape.ports_per_hca,
                               kMaxPorts);
}

}  // namespace

Result<Fabric> Fabric::create(const Shape& shape) {
  IB_CHECK(check(shape));
  Fabric fabric(shape);
  for (const std::string& name : shape.nodes) {
    const auto index = static_cast<std::uint32_t>(fabric.nodes_.size());
    if (!fabric.node_by_name_.emplace(name, index).second) return Status::InvalidParameter;
    Node& node = fabric.nodes_.emplace_back();
    node.name = name;
    node.addresses = fabric.default_addresses(node);
    fabric.node_by_address_.emplace(node.addresses[0].ip, index);
    for (std::uint32_t h = 0; h < shape.hcas_per_node; ++h) fabric.append_hca(node);
  }
  return fabric;
}

// Has room for all that the fabric can become, so that nothing ever moves. Unused room costs
// address space only.
Fabric::Fabric(const Shape& shape)
    : graph_(most_ports(shape) / shape.ports_per_hca, most_ports(shape)),
      ports_per_hca_(shape.ports_per_hca),
      link_layer_(shape.link_layer),
      link_layers_(shape.link_layers),
      packet_life_time_(shape.packet_life_time),
      address_block_(shape.addresses) {
  nodes_.reserve(shape.nodes.size());
  hcas_.reserve(most_ports(shape) / shape.ports_per_hca);
}

Hca& Fabric::append_hca(Node& node) {
  const auto position = static_cast<std::uint32_t>(&node - nodes_.data());
  const auto number = static_cast<std::uint32_t>(node.hcas.size());
  IB_ASSERT(hcas_.size() < hcas_.capacity());
  Hca& hca = hcas_.emplace_back();
  hca.name = "softib" + std::to_string(number);
  hca.index = static_cast<std::uint32_t>(hcas_.size() - 1);
  hca.node = position;
  hca.node_guid = position_guid(position, number, 0);
  const verbs::LinkLayer link_layer = link_layer_of(node, number);
  const bool is_ethernet = link_layer == verbs::LinkLayer::Ethernet;
  Element& element = graph_.append_element(ElementKind::ChannelAdapter, hca.node_guid);
  element.hca = hca.index;
  for (std::uint32_t p = 1; p <= ports_per_hca_; ++p) {
    graph_.append_port((is_ethernet ? ethernet_guid : position_guid)(position, number, p),
                       link_layer);
  }
  hca.first_port = element.first_port;
  hca.ports = graph_.ports_of(element);
  node.hcas.hcas_.push_back(&hca);
  if (is_ethernet) give_addresses(node, hca);
  return hca;
}

verbs::LinkLayer Fabric::link_layer_of(const Node& node, std::uint32_t hca) const {
  verbs::LinkLayer layer = link_layer_;
  for (const HcaLinkLayer& link : link_layers_) {
    if (link.hca == hca && (link.node.empty() || link.node == node.name)) layer = link.link_layer;
  }
  return layer;
}

Result<Hca*> Fabric::add_hca(Node& node) {
  if (node.hcas.size() >= kMaxHcasPerNode || kMaxPorts - graph_.port_count() < ports_per_hca_) {
    return Status::LimitExceeded;
  }
  Hca& hca = append_hca(node);
  hca.present = false;  // until its driver has started it
  return &hca;
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

}  // namespace ib::fabric
