// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// places.cpp comes here for an address that an interface of IP over InfiniBand has: first which
// interface sends, then which of those that have the destination it leads to.
#include "services/rdma_cm/addresses/interface_places.h"

#include "sa/server/partitions.h"
#include "verbs/gid.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace ib::services::rdma_cm {
namespace {

using fabric::IpInterface;
using ucma::Error;

// Programs of an interface without a scope have given none, or that of another one.
bool is_in_scope(const IpInterface& interface, const EndpointAddress& address) {
  return !verbs::is_link_local(address.ip) || address.scope == interface.index;
}

std::span<const IpInterface> interfaces_of(const fabric::Fabric& fabric, const fabric::Node& node) {
  return fabric.ip_interfaces().of(index_of(fabric, node));
}

bool is_in_network(const verbs::Gid& ip, const IpInterface::Address& network) {
  if (verbs::is_ipv4(ip) != verbs::is_ipv4(network.ip)) return false;
  std::size_t at = verbs::is_ipv4(ip) ? verbs::kIpv4InGid : 0;
  std::uint32_t bits = network.bits;
  constexpr std::uint32_t kByte = 8;
  for (; bits >= kByte; bits -= kByte, ++at) {
    if (ip[at] != network.ip[at]) return false;
  }
  return bits == 0 || ((ip[at] ^ network.ip[at]) >> (kByte - bits)) == 0;
}

// Returns the address of the interface with which it would send, that of the longest network that
// has the destination, else the first of the family; nullptr if there is none of the family.
const IpInterface::Address* source_on(const IpInterface& interface, const verbs::Gid& destination) {
  const IpInterface::Address* best = nullptr;
  bool is_best_near = false;
  for (const IpInterface::Address& one : interface.addresses) {
    if (verbs::is_ipv4(one.ip) != verbs::is_ipv4(destination)) continue;
    if (verbs::is_link_local(one.ip) != verbs::is_link_local(destination)) continue;
    const bool is_near = is_in_network(destination, one);
    if (best != nullptr && (!is_near || (is_best_near && one.bits <= best->bits))) continue;
    best = &one;
    is_best_near = is_near;
  }
  return best;
}

struct Choice {
  const IpInterface* from = nullptr;
  const IpInterface* to = nullptr;
  const IpInterface::Address* source = nullptr;
};

bool leads(const fabric::Fabric& fabric, const IpInterface& from, const IpInterface& to) {
  return verbs::share_partition(from.pkey, to.pkey) && is_usable(fabric, *to.port) &&
         fabric.graph().reaches(*from.port, *to.port);
}

// Of all that have the destination, the first that `from` leads to. An address of the node itself
// is where it is.
const IpInterface* target_of(const fabric::Fabric& fabric, const IpInterface& from,
                             std::span<const fabric::IpInterfaces::Holder> holders) {
  for (const auto& holder : holders) {
    if (holder.interface == &from || leads(fabric, from, *holder.interface))
      return holder.interface;
  }
  return nullptr;
}

// For a source that is a wildcard: by the networks of the interfaces, the longest first; then those
// that reach the destination by a route. An own address is reached from itself.
Choice choose(const fabric::Fabric& fabric, const fabric::Node& node,
              const EndpointAddress& destination,
              std::span<const fabric::IpInterfaces::Holder> holders) {
  if (const IpInterface* own = interface_of(fabric, node, destination)) {
    const auto at = std::find_if(own->addresses.begin(), own->addresses.end(),
                                 [&](const auto& one) { return one.ip == destination.ip; });
    return {own, own, &*at};
  }
  std::vector<Choice> choices;
  for (const IpInterface& from : interfaces_of(fabric, node)) {
    if (!is_in_scope(from, destination)) continue;
    const IpInterface::Address* source = source_on(from, destination.ip);
    if (source != nullptr) choices.push_back({&from, target_of(fabric, from, holders), source});
  }
  const auto rank = [&destination](const Choice& choice) {
    const bool is_near = is_in_network(destination.ip, *choice.source);
    return is_near ? choice.source->bits + 1 : 0;
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const Choice& a, const Choice& b) { return rank(a) > rank(b); });
  if (choices.empty()) return {};
  // Interfaces in one network are one for the kernel, too, if only one of them leads there.
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [](const Choice& choice) { return choice.to != nullptr; });
  return found != choices.end() ? *found : choices.front();
}

}  // namespace

const fabric::IpInterface* interface_of(const fabric::Fabric& fabric, const fabric::Node& node,
                                        const EndpointAddress& address) {
  if (address.family != Family::Ipv4 && address.family != Family::Ipv6) return nullptr;
  for (const IpInterface& one : interfaces_of(fabric, node)) {
    if (one.has(address.ip) && is_in_scope(one, address)) return &one;
  }
  return nullptr;
}

const fabric::Node* interface_owner(const fabric::Fabric& fabric, const EndpointAddress& address) {
  if (address.family != Family::Ipv4 && address.family != Family::Ipv6) return nullptr;
  const auto holders = fabric.ip_interfaces().with_address(address.ip);
  return holders.empty() ? nullptr : &fabric.nodes()[holders.front().node];
}

bool is_between_interfaces(const fabric::Fabric& fabric, const fabric::Node& node,
                           const EndpointAddress& source, const EndpointAddress& destination) {
  if (interface_owner(fabric, destination) == nullptr) return false;
  if (is_any(source) || is_loopback(source)) return !interfaces_of(fabric, node).empty();
  return interface_of(fabric, node, source) != nullptr;
}

bool arrives_at(const fabric::Fabric& fabric, const fabric::Port& port, std::uint16_t pkey,
                const fabric::Node& node, const EndpointAddress& address) {
  bool is_elsewhere = false;
  for (const IpInterface& one : interfaces_of(fabric, node)) {
    if (!one.has(address.ip)) continue;
    if (one.port == &port && sa::is_same_partition(one.pkey, pkey)) return true;
    is_elsewhere = true;
  }
  return !is_elsewhere && has_address(fabric, node, address);
}

ucma::Error find_interface_way(const fabric::Fabric& fabric, const fabric::Node& node,
                               const EndpointAddress& source, const EndpointAddress& destination,
                               Way& way) {
  const auto holders = fabric.ip_interfaces().with_address(destination.ip);
  way.source = source;
  way.destination = destination;
  way.packet_life_time = fabric.packet_life_time();
  Choice choice;
  if (is_any(source) || is_loopback(source)) {
    choice = choose(fabric, node, destination, holders);
    if (choice.source != nullptr) way.source.ip = choice.source->ip;
    if (verbs::is_link_local(way.source.ip)) way.source.scope = choice.from->index;
  } else {
    choice.from = interface_of(fabric, node, source);
    if (choice.from != nullptr) choice.to = target_of(fabric, *choice.from, holders);
  }
  if (choice.from == nullptr) return Error::NetUnreachable;
  if (!is_usable(fabric, *choice.from->port)) return Error::NoDevice;
  if (choice.to == nullptr) return Error::HostUnreachable;
  way.from = choice.from->port;
  way.to = choice.to->port;
  way.pkey = choice.from->pkey;
  return Error::None;
}

}  // namespace ib::services::rdma_cm
