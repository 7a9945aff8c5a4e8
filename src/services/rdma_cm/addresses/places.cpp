// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/places.h"

#include "services/rdma_cm/addresses/interface_places.h"

#include <algorithm>

namespace ib::services::rdma_cm {
namespace {

using ucma::Error;

bool is_of(const verbs::Gid& ip, Family family) {
  return verbs::is_ipv4(ip) == (family == Family::Ipv4);
}

// Returns the Ethernet port of a node that has the address, or nullptr if none has.
const fabric::Port* ethernet_port_of(const fabric::Fabric& fabric, const fabric::Node& node,
                                     const verbs::Gid& ip) {
  const fabric::Port* port = fabric.graph().find_port(ip);
  if (port == nullptr || !port->is_ethernet() || !is_usable(fabric, *port)) return nullptr;
  return fabric.hca_of(*port)->node == index_of(fabric, node) ? port : nullptr;
}

// Returns the first usable InfiniBand port of a node that `fits`, or nullptr.
template <class Fits>
const fabric::Port* find_infiniband_port(const fabric::Fabric& fabric, const fabric::Node& node,
                                         Fits fits) {
  for (const fabric::Hca& hca : node.hcas) {
    for (const fabric::Port& port : hca.ports) {
      if (!port.is_ethernet() && is_usable(fabric, port) && fits(port)) return &port;
    }
  }
  return nullptr;
}

const fabric::Port* infiniband_port_of(const fabric::Fabric& fabric, const fabric::Node& node) {
  return find_infiniband_port(fabric, node, [](const fabric::Port&) { return true; });
}

bool reach_each_other(const fabric::Fabric& fabric, const fabric::Port& one,
                      const fabric::Port& other) {
  return fabric.graph().reaches(one, other);
}

// Ports of two nodes that have links reach only those at the other end. Leaves the way as it is if
// no port of the one reaches one of the other.
void choose_ports_that_reach(const fabric::Fabric& fabric, const fabric::Node& node,
                             const fabric::Node& peer, Way& way) {
  find_infiniband_port(fabric, node, [&](const fabric::Port& from) {
    const fabric::Port* to = find_infiniband_port(fabric, peer, [&](const fabric::Port& port) {
      return reach_each_other(fabric, from, port);
    });
    if (to == nullptr) return false;
    way.from = &from;
    way.to = to;
    return true;
  });
}

bool has_partition(const fabric::Port& port, std::uint16_t pkey) {
  return std::any_of(port.pkeys.begin(), port.pkeys.end(), [pkey](std::uint16_t one) {
    return (one & 0x7fff) != 0 && (one & 0x7fff) == (pkey & 0x7fff);
  });
}

// Returns the InfiniBand port that has the GID, or nullptr.
const fabric::Port* port_with_gid(const fabric::Fabric& fabric, const verbs::Gid& gid) {
  const fabric::Port* port = fabric.graph().find_port(gid);
  return port == nullptr || port->is_ethernet() || port->gid() != gid ? nullptr : port;
}

// The port from which an id that has none yet sends to a GID: one in the partition that has the
// GID, or reaches it, or is at least of the same subnet by its prefix.
const fabric::Port* own_port_for(const fabric::Fabric& fabric, const fabric::Node& node,
                                 const EndpointAddress& destination) {
  const fabric::Port* to = port_with_gid(fabric, destination.ip);
  const auto choose = [&](auto fits) {
    return find_infiniband_port(fabric, node, [&](const fabric::Port& port) {
      return has_partition(port, destination.pkey) && fits(port);
    });
  };
  const fabric::Port* own = choose([&](const fabric::Port& port) { return &port == to; });
  if (own == nullptr && to != nullptr) {
    own = choose([&](const fabric::Port& port) { return reach_each_other(fabric, port, *to); });
  }
  if (own != nullptr) return own;
  return choose([&](const fabric::Port& port) {
    const verbs::Gid gid = port.gid();
    return std::equal(gid.begin(), gid.begin() + 8, destination.ip.begin());
  });
}

// The address that stands for a wildcard or loopback address: the first of the family.
const fabric::Address* own_address(const fabric::Node& node, Family family) {
  const auto found =
      std::find_if(node.addresses.begin(), node.addresses.end(),
                   [family](const fabric::Address& one) { return is_of(one.ip, family); });
  return found == node.addresses.end() ? nullptr : &*found;
}

// Between GIDs. A destination that no port has is found to be so when the route is resolved.
Error find_gid_way(const fabric::Fabric& fabric, const fabric::Node& node,
                   const EndpointAddress& source, const EndpointAddress& destination, Way& way);

// "::1" of a node without IPv6 addresses: its link-local one on Ethernet, else its first port.
bool is_self(const EndpointAddress& address) {
  return is_any(address) || is_loopback(address);
}

// The partition of the interface that has the address; 0: none has.
std::uint16_t pkey_of(const fabric::Fabric& fabric, const fabric::Node& node,
                      const EndpointAddress& address) {
  const fabric::IpInterface* interface = interface_of(fabric, node, address);
  return interface != nullptr ? interface->pkey : 0;
}

// To a multicast group: from the port of the source, or the first one.
Error find_group_way(const fabric::Fabric& fabric, const fabric::Node& node,
                     const EndpointAddress& source, const EndpointAddress& destination, Way& way) {
  way.source = source;
  way.destination = destination;
  way.from = port_of(fabric, node, source);
  way.pkey = pkey_of(fabric, node, source);
  if (way.from == nullptr) return Error::NoDevice;
  if (!is_any(source)) return Error::None;
  const fabric::Address* first = own_address(node, destination.family);
  if (first == nullptr && !way.from->is_ethernet()) return Error::NetUnreachable;
  way.source.ip = first != nullptr ? first->ip : way.from->gid();
  way.pkey = pkey_of(fabric, node, way.source);
  return Error::None;
}

Error find_gid_way(const fabric::Fabric& fabric, const fabric::Node& node,
                   const EndpointAddress& source, const EndpointAddress& destination, Way& way) {
  way.source = source;
  way.destination = destination;
  if (is_any(source)) way.source.pkey = destination.pkey;
  way.pkey = way.source.pkey;
  if (!is_self(source)) {
    way.from = port_of(fabric, node, source);
  } else if (is_self(destination)) {
    way.from = infiniband_port_of(fabric, node);
  } else {
    way.from = own_port_for(fabric, node, way.destination);
  }
  if (way.from == nullptr) return Error::NoDevice;
  way.source.ip = way.from->gid();
  if (is_self(destination)) {
    way.destination.ip = way.source.ip;
    if (way.pkey == 0) way.pkey = way.from->pkeys.front();
  }
  way.to = port_with_gid(fabric, way.destination.ip);
  return Error::None;
}

}  // namespace

bool is_usable(const fabric::Fabric& fabric, const fabric::Port& port) {
  const fabric::Hca* hca = fabric.hca_of(port);
  return hca != nullptr && hca->present && !hca->asleep && port.state == verbs::PortState::Active;
}

std::uint32_t index_of(const fabric::Fabric& fabric, const fabric::Node& node) {
  return static_cast<std::uint32_t>(&node - fabric.nodes().data());
}

bool has_address(const fabric::Fabric& fabric, const fabric::Node& node,
                 const EndpointAddress& address) {
  if (is_self(address)) return true;
  if (address.family == Family::Ib) {
    const fabric::Port* port = port_with_gid(fabric, address.ip);
    const fabric::Hca* hca = port != nullptr ? fabric.hca_of(*port) : nullptr;
    return hca != nullptr && hca->node == index_of(fabric, node);
  }
  if (interface_of(fabric, node, address) != nullptr) return true;
  if (fabric.find_node_by_address(address.ip) == &node) return true;
  const fabric::Port* port = fabric.graph().find_port(address.ip);
  return port != nullptr && port->is_ethernet() &&
         fabric.hca_of(*port)->node == index_of(fabric, node);
}

const fabric::Port* port_of(const fabric::Fabric& fabric, const fabric::Node& node,
                            const EndpointAddress& address) {
  verbs::Gid ip = address.ip;
  if (address.family == Family::Ib) {
    if (is_self(address)) return infiniband_port_of(fabric, node);
    return find_infiniband_port(fabric, node,
                                [&ip](const fabric::Port& port) { return port.gid() == ip; });
  }
  if (is_self(address)) {
    const fabric::Address* own = own_address(node, address.family);
    if (own != nullptr) ip = own->ip;
  }
  EndpointAddress place = address;
  place.ip = ip;
  if (const fabric::IpInterface* interface = interface_of(fabric, node, place)) {
    return is_usable(fabric, *interface->port) ? interface->port : nullptr;
  }
  if (const fabric::Port* port = ethernet_port_of(fabric, node, ip)) return port;
  if (const fabric::Port* port = infiniband_port_of(fabric, node)) return port;
  if (!is_self(address)) return nullptr;
  for (const fabric::Address& own : node.addresses) {
    if (const fabric::Port* port = ethernet_port_of(fabric, node, own.ip)) return port;
  }
  return nullptr;
}

bool has_moved(const fabric::Fabric& fabric, const fabric::Node& node,
               const EndpointAddress& address, const fabric::Port& port) {
  if (address.family == Family::Ib || is_self(address)) return false;
  if (port.is_ethernet()) return fabric.graph().find_port(address.ip) != &port;
  if (fabric.find_node_by_address(address.ip) != &node) return true;
  return !is_usable(fabric, port) && infiniband_port_of(fabric, node) != nullptr;
}

namespace {

ucma::Error choose_ports(const fabric::Fabric& fabric, const fabric::Node& node,
                         const fabric::Node& peer, Way& way) {
  const bool is_self_bound = is_self(way.source);
  way.from =
      port_of(fabric, node, is_self_bound ? any_address(way.destination.family) : way.source);
  way.to = port_of(fabric, peer, way.destination);
  if (way.from != nullptr && way.to != nullptr &&
      way.from->is_ethernet() != way.to->is_ethernet()) {
    way.from = infiniband_port_of(fabric, node);
    way.to = infiniband_port_of(fabric, peer);
  }
  if (way.from == nullptr) return Error::NoDevice;
  if (way.to == nullptr) return Error::HostUnreachable;
  way.pkey = pkey_of(fabric, node, way.source);
  if (way.pkey == 0) way.pkey = pkey_of(fabric, peer, way.destination);
  if (!way.from->is_ethernet() && !reach_each_other(fabric, *way.from, *way.to)) {
    choose_ports_that_reach(fabric, node, peer, way);
  }
  return Error::None;
}

// In place of wildcards.
ucma::Error choose_addresses(const fabric::Node& node, bool to_self, Way& way) {
  const EndpointAddress source = way.source;
  const EndpointAddress destination = way.destination;
  if (is_any(destination) && is_loopback(source)) way.destination.ip = source.ip;
  if (is_any(source)) {
    const fabric::Address* first = own_address(node, destination.family);
    if (is_loopback(destination)) {
      way.source.ip = destination.ip;
    } else if (first != nullptr) {
      way.source.ip = first->ip;
    } else if (way.from->is_ethernet()) {
      way.source.ip = way.from->gid();
    } else {
      return to_self ? Error::None : Error::NetUnreachable;
    }
  }
  if (is_any(destination)) way.destination.ip = way.source.ip;
  return Error::None;
}

}  // namespace

ucma::Error find_way(const fabric::Fabric& fabric, const fabric::Node& node,
                     const EndpointAddress& source, const EndpointAddress& destination, Way& way) {
  if (destination.family == Family::Ib) return find_gid_way(fabric, node, source, destination, way);
  if (verbs::is_multicast(destination.ip))
    return find_group_way(fabric, node, source, destination, way);
  if (is_between_interfaces(fabric, node, source, destination))
    return find_interface_way(fabric, node, source, destination, way);
  const bool to_self = is_self(destination);
  const fabric::Node* peer = to_self ? &node : fabric.find_node_by_address(destination.ip);
  if (peer == nullptr) peer = interface_owner(fabric, destination);
  if (peer == nullptr) {
    const fabric::Port* port = fabric.graph().find_port(destination.ip);  // a link-local GID
    if (port == nullptr || !port->is_ethernet()) return Error::NetUnreachable;
    peer = &fabric.node_of(*fabric.hca_of(*port));
  }
  way.source = source;
  way.destination = destination;
  way.packet_life_time = fabric.packet_life_time();
  const ucma::Error error = choose_ports(fabric, node, *peer, way);
  return error == Error::None ? choose_addresses(node, to_self, way) : error;
}

std::uint8_t gid_index_of(const fabric::Port& port, const EndpointAddress& address) {
  if (!port.is_ethernet()) return 0;
  for (std::size_t i = 0; i < port.gids.size(); ++i) {
    if (port.gids[i].gid == address.ip) return static_cast<std::uint8_t>(i);
  }
  // Loopback and wildcard: the first address that the node gave the port.
  return port.gids.size() > 1 && !verbs::is_zero(port.gids[1].gid) ? 1 : 0;
}

std::optional<Path> find_path(const Way& way, std::uint8_t traffic_class) {
  Path path;
  const auto& own = way.from->pkeys;
  const auto shared = std::find_if(own.begin(), own.end(), [&way](std::uint16_t pkey) {
    const bool wanted = way.pkey == 0 || (pkey & 0x7fff) == (way.pkey & 0x7fff);
    return wanted && (pkey & 0x7fff) != 0 &&
           std::any_of(way.to->pkeys.begin(), way.to->pkeys.end(),
                       [pkey](std::uint16_t other) { return verbs::share_partition(pkey, other); });
  });
  if (shared == own.end()) return std::nullopt;
  path.pkey = *shared;
  path.pkey_index = static_cast<std::uint16_t>(shared - own.begin());
  path.port = static_cast<std::uint8_t>(way.from->number);
  path.is_ethernet = way.from->is_ethernet();
  path.packet_life_time = way.packet_life_time;
  path.traffic_class = traffic_class;
  path.sgid_index = gid_index_of(*way.from, way.source);
  path.sgid = way.from->gids[path.sgid_index].gid;
  path.dgid = way.to->gids[gid_index_of(*way.to, way.destination)].gid;
  if (path.is_ethernet) {
    constexpr std::uint8_t kHopLimit = 64;
    path.hop_limit = kHopLimit;
    return path;
  }
  path.slid = way.from->lid;
  path.dlid = way.to->lid;
  return path;
}

}  // namespace ib::services::rdma_cm
