// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses of nodes, and with them the GIDs of Ethernet ports.
#include "fabric/addresses.h"
#include "fabric/model.h"
#include "verbs/limits.h"

#include <algorithm>

namespace ib::fabric {
namespace {

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

const Node* Fabric::find_node_by_address(const verbs::Gid& ip) const {
  const auto found = node_by_address_.find(ip);
  return found != node_by_address_.end() ? &nodes_[found->second] : nullptr;
}

// The default addresses of the ports of an HCA that has come, after those of the ports before.
void Fabric::give_addresses(Node& node, const Hca& hca) {
  auto ordinal = static_cast<std::uint32_t>(ethernet_ports(node).size()) - new_hca_.ports;
  for (Port& port : hca.ports) {
    const verbs::Gid own = default_address(address_block_, hca.node, ordinal);
    // The first has come with the node, and may have gone with set_addresses().
    if (ordinal != 0 && node_by_address_.emplace(own, hca.node).second) {
      node.addresses.push_back({own, kLoopbackInterface, ordinal});
    }
    place_addresses(node, ordinal++, port);
  }
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
  const bool of_a_port = owner == nullptr && graph_.find_port(address.ip) != nullptr;
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
    addresses.push_back(
        {default_address(address_block_, index, ordinal), kLoopbackInterface, ordinal});
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
    if (!stays) (void)graph_.set_gid(port, i, {});
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
        graph_.set_gid(port, index, {address.ip, verbs::GidType::RoceV2, address.interface});
    IB_ASSERT(placed == Status::Ok);
  }
  port.gids[0].interface = first_interface;
}

}  // namespace ib::fabric
