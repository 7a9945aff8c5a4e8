// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/model.h"

#include "fabric/addresses.h"
#include "verbs/limits.h"

#include <algorithm>
#include <cstddef>

namespace ib::fabric {
namespace {

// IsSystemImageGuidSupported, IsExtendedSpeedsSupported [IBA1 14.2.5.6]: all that is true so far.
constexpr std::uint32_t kPortCapabilities = (1u << 11) | (1u << 14);
// As Linux shows for RoCE: communication manager, GIDs from IP addresses.
constexpr std::uint32_t kEthernetCapabilities = (1u << 16) | (1u << 26);

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
      shape.ports_per_hca > kMaxPortsPerHca) {
    return Status::LimitExceeded;
  }
  const std::size_t ports = shape.nodes.size() * shape.hcas_per_node * shape.ports_per_hca;
  if (ports > kMaxPorts) return Status::LimitExceeded;
  const bool good = std::all_of(shape.nodes.begin(), shape.nodes.end(), is_good_name) &&
                    std::all_of(shape.links.begin(), shape.links.end(), [&](const HcaLink& link) {
                      return link.hca < shape.hcas_per_node &&
                             (link.node.empty() || std::find(shape.nodes.begin(), shape.nodes.end(),
                                                             link.node) != shape.nodes.end());
                    });
  return good ? Status::Ok : Status::InvalidParameter;
}

// The entry of a GID table that has this GID; its end: none has. Entry 0 is the port's own.
std::size_t find_entry(const Port& port, const verbs::Gid& gid) {
  std::size_t index = 1;
  while (index < port.gids.size() && port.gids[index].gid != gid) ++index;
  return index;
}

}  // namespace

std::vector<Port*> ethernet_ports(const Node& node) {
  std::vector<Port*> ports;
  for (const Hca& hca : node.hcas) {
    for (Port& port : hca.ports) {
      if (port.is_ethernet()) ports.push_back(&port);
    }
  }
  return ports;
}

std::uint32_t default_capabilities(verbs::LinkLayer link_layer) {
  return link_layer == verbs::LinkLayer::Ethernet ? kEthernetCapabilities : kPortCapabilities;
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
    node.addresses = fabric.default_addresses(node);
    fabric.node_by_address_.emplace(node.addresses[0].ip, index);
    for (std::uint32_t h = 0; h < shape.hcas_per_node; ++h) fabric.append_hca(node);
  }
  return fabric;
}

// Room for all that the fabric can become, so that nothing ever moves. Unused room costs
// address space only.
void Fabric::reserve(const Shape& shape) {
  ports_per_hca_ = shape.ports_per_hca;
  link_layer_ = shape.link_layer;
  links_ = shape.links;
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
  hca.node_guid = position_guid(position, number, 0);
  const verbs::LinkLayer link_layer = link_layer_of(node, number);
  const bool is_ethernet = link_layer == verbs::LinkLayer::Ethernet;
  for (std::uint32_t p = 1; p <= ports_per_hca_; ++p) {
    append_port(hca, p, (is_ethernet ? ethernet_guid : position_guid)(position, number, p),
                link_layer);
  }
  hca.ports = std::span(ports_).subspan(hca.first_port);
  node.hcas.hcas_.push_back(&hca);
  if (is_ethernet) give_addresses(node, hca);
  hca_by_guid_.emplace(hca.node_guid, hca.index);
  return hca;
}

verbs::LinkLayer Fabric::link_layer_of(const Node& node, std::uint32_t hca) const {
  verbs::LinkLayer layer = link_layer_;
  for (const HcaLink& link : links_) {
    if (link.hca == hca && (link.node.empty() || link.node == node.name)) layer = link.link_layer;
  }
  return layer;
}

void Fabric::append_port(const Hca& hca, std::uint32_t number, std::uint64_t guid,
                         verbs::LinkLayer link_layer) {
  Port& port = ports_.emplace_back();
  port.element = hca.index;
  port.number = number;
  port.link_layer = link_layer;
  port.capability_mask = default_capabilities(link_layer);
  bool placed = set_guid(port, guid) == Status::Ok;
  if (port.is_ethernet()) {
    port.sm_lid = 0;
  } else {
    // There is a free one: no more ports fit in than there are LIDs, and each has one.
    while (port_by_lid_[next_lid_] != 0)
      next_lid_ = static_cast<std::uint16_t>(next_lid_ % kLastUnicastLid + 1);
    placed = placed && set_lid(port, next_lid_) == Status::Ok;
  }
  IB_ASSERT(placed);
}

// The default addresses of the ports of an HCA that has come, after those of the ports before.
void Fabric::give_addresses(Node& node, const Hca& hca) {
  auto ordinal = static_cast<std::uint32_t>(ethernet_ports(node).size()) - ports_per_hca_;
  for (Port& port : hca.ports) {
    const verbs::Gid own = default_address(hca.node, ordinal);
    // The first has come with the node, and may have gone with set_addresses().
    if (ordinal != 0 && node_by_address_.emplace(own, hca.node).second) {
      node.addresses.push_back({own, kLoopbackInterface, ordinal});
    }
    place_addresses(node, ordinal++, port);
  }
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
  const auto found = port_by_gid_.find(gid);
  return found != port_by_gid_.end() ? &ports_[found->second] : nullptr;
}

const Node* Fabric::find_node_by_address(const verbs::Gid& ip) const {
  const auto found = node_by_address_.find(ip);
  return found != node_by_address_.end() ? &nodes_[found->second] : nullptr;
}

Status Fabric::set_lid(Port& port, std::uint16_t lid) {
  if (lid == 0 || lid > kLastUnicastLid || port.is_ethernet()) return Status::InvalidParameter;
  const std::uint32_t number = index_of(port) + 1;
  if (port_by_lid_[lid] == number) return Status::Ok;
  if (port_by_lid_[lid] != 0) return Status::AlreadyExists;
  port_by_lid_[port.lid] = 0;  // entry 0 stays what it is: no port has LID 0
  port_by_lid_[lid] = static_cast<std::uint16_t>(number);
  port.lid = lid;
  return Status::Ok;
}

Status Fabric::set_guid(Port& port, std::uint64_t guid) {
  GidEntry entry;
  if (!port.gids.empty()) entry = port.gids[0];
  entry.gid = verbs::make_gid(kSubnetPrefix, guid);
  entry.type = port.is_ethernet() ? verbs::GidType::RoceV2 : verbs::GidType::InfiniBand;
  const Status done = set_gid(port, 0, std::move(entry));
  if (done == Status::Ok) port.guid = guid;
  return done;
}

// A zero GID frees the entry. AlreadyExists: another entry has it.
Status Fabric::set_gid(Port& port, std::size_t index, GidEntry entry) {
  if (port.gids.size() <= index) port.gids.resize(index + 1);
  GidEntry& now = port.gids[index];
  if (now.gid != entry.gid) {
    if (!verbs::is_zero(entry.gid) && !port_by_gid_.emplace(entry.gid, index_of(port)).second) {
      return Status::AlreadyExists;
    }
    if (!verbs::is_zero(now.gid)) port_by_gid_.erase(now.gid);
  }
  now = std::move(entry);
  return Status::Ok;
}

// `before`: the addresses that the node is to have beside this one.
Status Fabric::check_address(const Node& node, std::span<const Address> before,
                             const Address& address) const {
  const std::size_t ports = std::max(ethernet_ports(node).size(), std::size_t{1});
  if (!verbs::is_host_address(address.ip) || address.port >= ports) return Status::InvalidParameter;
  const Node* owner = find_node_by_address(address.ip);
  const bool twice = std::any_of(before.begin(), before.end(),
                                 [&](const Address& other) { return other.ip == address.ip; });
  // A link-local address of a port is an address of no node.
  const bool of_a_port = owner == nullptr && find_port(address.ip) != nullptr;
  if (twice || of_a_port || (owner != nullptr && owner != &node)) return Status::AlreadyExists;
  const auto on_port = std::count_if(before.begin(), before.end(), [&](const Address& other) {
    return other.port == address.port;
  });
  // The first GID of each port is its link-local one.
  const bool fits = static_cast<std::size_t>(on_port) + 1 < verbs::limits::kGidTableLength;
  return fits ? Status::Ok : Status::LimitExceeded;
}

std::vector<Address> Fabric::available_addresses(const Node& node,
                                                 const std::vector<Address>& wanted) const {
  std::vector<Address> result;
  for (const Address& address : wanted) {
    if (check_address(node, result, address) == Status::Ok) result.push_back(address);
  }
  return result;
}

std::vector<Address> Fabric::default_addresses(const Node& node) const {
  const auto index = static_cast<std::size_t>(&node - nodes_.data());
  const std::size_t ports = std::max(ethernet_ports(node).size(), std::size_t{1});
  std::vector<Address> addresses;
  for (std::uint32_t ordinal = 0; ordinal < ports; ++ordinal) {
    addresses.push_back({default_address(index, ordinal), kLoopbackInterface, ordinal});
  }
  return addresses;
}

Status Fabric::set_addresses(Node& node, std::vector<Address> addresses, AddressSource source) {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    IB_CHECK(check_address(node, std::span(addresses).first(i), addresses[i]));
  }
  const auto index = static_cast<std::uint32_t>(&node - nodes_.data());
  for (const Address& address : node.addresses) node_by_address_.erase(address.ip);
  for (const Address& address : addresses) node_by_address_.emplace(address.ip, index);
  node.addresses = std::move(addresses);
  node.address_source = source;
  const std::vector<Port*> ports = ethernet_ports(node);
  // An address may go from one port to another: first all that leave, then all that come.
  for (std::uint32_t i = 0; i < ports.size(); ++i) drop_addresses(node, i, *ports[i]);
  for (std::uint32_t i = 0; i < ports.size(); ++i) place_addresses(node, i, *ports[i]);
  return Status::Ok;
}

// Frees the GIDs of a port that are no address of it any more.
void Fabric::drop_addresses(const Node& node, std::uint32_t ordinal, Port& port) {
  for (std::size_t i = 1; i < port.gids.size(); ++i) {
    const bool stays = std::any_of(
        node.addresses.begin(), node.addresses.end(),
        [&](const Address& a) { return a.port == ordinal && a.ip == port.gids[i].gid; });
    if (!stays) (void)set_gid(port, i, {});
  }
}

// Gives a port the GIDs of its addresses that it has not yet, each in the first free entry.
void Fabric::place_addresses(const Node& node, std::uint32_t ordinal, Port& port) {
  std::string first_interface;
  for (const Address& address : node.addresses) {
    if (address.port != ordinal) continue;
    if (first_interface.empty()) first_interface = address.interface;
    std::size_t index = find_entry(port, address.ip);
    if (index == port.gids.size()) index = find_entry(port, verbs::Gid{});
    const Status placed =
        set_gid(port, index, {address.ip, verbs::GidType::RoceV2, address.interface});
    IB_ASSERT(placed == Status::Ok);
  }
  port.gids[0].interface = first_interface;
}

}  // namespace ib::fabric
