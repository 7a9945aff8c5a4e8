// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/model.h"

#include <algorithm>
#include <cstddef>

namespace ib::fabric {
namespace {

// An EUI-64 with the "locally administered" bit: "\2SF", then the position, so that no real adapter
// has it. Byte 5, 6: node, byte 7: HCA, byte 8: port (0: the HCA itself).
constexpr std::uint64_t kGuidBase = 0x0253460000000000ull;

// IsSystemImageGuidSupported, IsExtendedSpeedsSupported [IBA1 14.2.5.6]: all that is true so far.
constexpr std::uint32_t kPortCapabilities = (1u << 11) | (1u << 14);

constexpr std::size_t kMaxNameLength = 63;  // names travel in char[64], NUL terminated

std::uint64_t guid(std::size_t node, std::uint32_t hca, std::uint32_t port) {
  return kGuidBase | (static_cast<std::uint64_t>(node) << 16) | (std::uint64_t{hca} << 8) | port;
}

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
      shape.ports_per_hca > kMaxPortsPerHca) {
    return Status::LimitExceeded;
  }
  const std::size_t ports = shape.nodes.size() * shape.hcas_per_node * shape.ports_per_hca;
  if (ports > kMaxPorts) return Status::LimitExceeded;
  const bool good = std::all_of(shape.nodes.begin(), shape.nodes.end(), is_good_name);
  return good ? Status::Ok : Status::InvalidParameter;
}

}  // namespace

verbs::Gid Port::gid() const {
  verbs::Gid gid{};
  for (std::size_t i = 0; i < 8; ++i) {
    const auto shift = 56 - 8 * i;
    gid[i] = static_cast<std::uint8_t>(kSubnetPrefix >> shift);
    gid[8 + i] = static_cast<std::uint8_t>(guid >> shift);
  }
  return gid;
}

Result<Fabric> Fabric::create(const Shape& shape) {
  IB_CHECK(check(shape));
  Fabric fabric;
  fabric.reserve(shape);
  for (const std::string& name : shape.nodes) {
    const auto index = static_cast<std::uint32_t>(fabric.nodes_.size());
    if (!fabric.node_by_name_.emplace(name, index).second) return Status::InvalidParameter;
    Node& node = fabric.nodes_.emplace_back();
    node.name = name;
    for (std::uint32_t h = 0; h < shape.hcas_per_node; ++h) fabric.append_hca(node);
  }
  return fabric;
}

// Room for all that the fabric can become, so that nothing ever moves. Unused room costs
// address space only.
void Fabric::reserve(const Shape& shape) {
  ports_per_hca_ = shape.ports_per_hca;
  const std::size_t ports =
      std::min<std::size_t>(shape.nodes.size() * kMaxHcasPerNode * shape.ports_per_hca, kMaxPorts);
  nodes_.reserve(shape.nodes.size());
  hcas_.reserve(ports / shape.ports_per_hca);
  ports_.reserve(ports);
  port_by_lid_.resize(std::size_t{kLastUnicastLid} + 1);
}

Hca& Fabric::append_hca(Node& node) {
  const auto position = static_cast<std::uint32_t>(&node - nodes_.data());
  const auto number = static_cast<std::uint32_t>(node.hcas.size());
  IB_ASSERT(hcas_.size() < hcas_.capacity() && ports_.size() + ports_per_hca_ <= ports_.capacity());
  Hca& hca = hcas_.emplace_back();
  hca.name = "softib" + std::to_string(number);
  hca.index = static_cast<std::uint32_t>(hcas_.size() - 1);
  hca.node = position;
  hca.first_port = port_count();
  hca.node_guid = fabric::guid(position, number, 0);
  for (std::uint32_t p = 1; p <= ports_per_hca_; ++p) {
    append_port(hca, p, fabric::guid(position, number, p));
  }
  hca.ports = std::span(ports_).subspan(hca.first_port);
  node.hcas.hcas_.push_back(&hca);
  hca_by_guid_.emplace(hca.node_guid, hca.index);
  return hca;
}

void Fabric::append_port(const Hca& hca, std::uint32_t number, std::uint64_t guid) {
  // There is a free one: no more ports fit in than there are LIDs, and each has one.
  while (port_by_lid_[next_lid_] != 0)
    next_lid_ = static_cast<std::uint16_t>(next_lid_ % kLastUnicastLid + 1);
  Port& port = ports_.emplace_back();
  port.element = hca.index;
  port.number = number;
  port.capability_mask = kPortCapabilities;
  const bool placed = set_lid(port, next_lid_) == Status::Ok && set_guid(port, guid) == Status::Ok;
  IB_ASSERT(placed);
}

Result<Hca*> Fabric::add_hca(Node& node) {
  if (node.hcas.size() >= kMaxHcasPerNode || kMaxPorts - ports_.size() < ports_per_hca_) {
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
  const auto found = hca_by_guid_.find(guid);
  if (found == hca_by_guid_.end()) return nullptr;
  const Hca& hca = hcas_[found->second];
  return &node_of(hca) == &node ? &hca : nullptr;
}

const Port* Fabric::port_at(std::uint32_t number) const {
  return number != 0 ? &ports_[number - 1] : nullptr;
}

std::uint32_t Fabric::index_of(const Port& port) const {
  const auto index = static_cast<std::size_t>(&port - ports_.data());
  IB_ASSERT(index < ports_.size());
  return static_cast<std::uint32_t>(index);
}

const Port* Fabric::find_port(std::uint16_t lid) const {
  return lid < port_by_lid_.size() ? port_at(port_by_lid_[lid]) : nullptr;
}

const Port* Fabric::find_port(const verbs::Gid& gid) const {
  std::uint64_t guid = 0;
  for (std::size_t i = 8; i < gid.size(); ++i) guid = guid << 8 | gid[i];
  const auto found = port_by_guid_.find(guid);
  if (found == port_by_guid_.end()) return nullptr;
  const Port& port = ports_[found->second];
  return port.gid() == gid ? &port : nullptr;
}

Status Fabric::set_lid(Port& port, std::uint16_t lid) {
  if (lid == 0 || lid > kLastUnicastLid) return Status::InvalidParameter;
  const std::uint32_t number = index_of(port) + 1;
  if (port_by_lid_[lid] == number) return Status::Ok;
  if (port_by_lid_[lid] != 0) return Status::AlreadyExists;
  port_by_lid_[port.lid] = 0;  // entry 0 stays what it is: no port has LID 0
  port_by_lid_[lid] = static_cast<std::uint16_t>(number);
  port.lid = lid;
  return Status::Ok;
}

Status Fabric::set_guid(Port& port, std::uint64_t guid) {
  const std::uint32_t index = index_of(port);
  const auto [found, is_new] = port_by_guid_.emplace(guid, index);
  if (!is_new) return found->second == index ? Status::Ok : Status::AlreadyExists;
  const auto before = port_by_guid_.find(port.guid);
  if (port.guid != guid && before != port_by_guid_.end() && before->second == index) {
    port_by_guid_.erase(before);
  }
  port.guid = guid;
  return Status::Ok;
}

}  // namespace ib::fabric
