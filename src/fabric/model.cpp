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
  for (auto name = shape.nodes.begin(); name != shape.nodes.end(); ++name) {
    if (!is_good_name(*name)) return Status::InvalidParameter;
    if (std::find(shape.nodes.begin(), name, *name) != name) return Status::InvalidParameter;
  }
  return Status::Ok;
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
  fabric.ports_per_hca_ = shape.ports_per_hca;
  fabric.nodes_.resize(shape.nodes.size());
  for (std::size_t i = 0; i < shape.nodes.size(); ++i) {
    fabric.nodes_[i].name = shape.nodes[i];
    for (std::uint32_t h = 0; h < shape.hcas_per_node; ++h) {
      fabric.append_hca(fabric.nodes_[i], shape.ports_per_hca);
    }
  }
  // Unicast LIDs end at 0xbfff [IBA1 4.1.3]; the limits above keep well below that.
  IB_ASSERT(fabric.port_count_ <= 0xbfff);
  return fabric;
}

Hca& Fabric::append_hca(Node& node, std::uint32_t ports) {
  const auto position = static_cast<std::size_t>(&node - nodes_.data());
  const auto number = static_cast<std::uint32_t>(node.hcas.size());
  Hca& hca = node.hcas.emplace_back();
  hca.name = "softib" + std::to_string(number);
  hca.index = hca_count_++;
  hca.first_port = port_count_;
  hca.node_guid = fabric::guid(position, number, 0);
  for (std::uint32_t p = 1; p <= ports; ++p) {
    Port& port = hca.ports.emplace_back();
    port.number = p;
    port.guid = fabric::guid(position, number, p);
    port.lid = static_cast<std::uint16_t>(++port_count_);
    port.capability_mask = kPortCapabilities;
  }
  return hca;
}

Result<Hca*> Fabric::add_hca(Node& node) {
  if (node.hcas.size() >= kMaxHcasPerNode) return Status::LimitExceeded;
  Hca& hca = append_hca(node, ports_per_hca_);
  hca.present = false;  // until its driver has started it
  return &hca;
}

const Node* Fabric::find_node(std::string_view name) const {
  if (name.empty()) return nodes_.empty() ? nullptr : &nodes_.front();
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [name](const Node& node) { return node.name == name; });
  return found == nodes_.end() ? nullptr : &*found;
}

const Hca* Fabric::find_hca(std::uint32_t index) const {
  for (const Node& node : nodes_) {
    for (const Hca& hca : node.hcas) {
      if (hca.index == index) return &hca;
    }
  }
  return nullptr;
}

Hca* Fabric::find_hca(std::uint32_t index) {
  return const_cast<Hca*>(static_cast<const Fabric&>(*this).find_hca(index));
}

const Hca* Fabric::find_hca_by_guid(const Node& node, std::uint64_t guid) const {
  const auto found = std::find_if(node.hcas.begin(), node.hcas.end(),
                                  [guid](const Hca& hca) { return hca.node_guid == guid; });
  return found == node.hcas.end() ? nullptr : &*found;
}

}  // namespace ib::fabric
