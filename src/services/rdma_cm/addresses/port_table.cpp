// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/port_table.h"

namespace ib::services::rdma_cm {

bool takes_any_address(const EndpointAddress& address) {
  return is_any(address) || is_loopback(address);
}

Error PortTable::check(const Owners& owners, const PortOwner& owner, bool reuse) {
  for (const auto& [id, other] : owners) {
    if (other.id == owner.id || (reuse && other.reuse)) continue;
    const bool other_family = other.address.family != owner.address.family;
    if (owner.af_only && other.af_only && other_family) continue;
    if (takes_any_address(owner.address) || takes_any_address(other.address)) {
      return Error::NoAddress;
    }
    if (!other_family && owner.address.ip == other.address.ip) return Error::AddressInUse;
  }
  return Error::None;
}

Error PortTable::bind(std::uint32_t node, PortSpace space, PortOwner& owner) {
  if (owner.address.port == 0) return bind_any(node, space, owner);
  Owners& owners = owners_[{node, space, owner.address.port}];
  const Error error = check(owners, owner, owner.reuse);
  if (error == Error::None) owners[owner.id] = owner;
  return error;
}

// A random port that nobody has, so that the last one is not given again at once.
Error PortTable::bind_any(std::uint32_t node, PortSpace space, PortOwner& owner) {
  const std::uint32_t count = std::uint32_t{range_.last} - range_.first + 1;
  const std::uint32_t first = range_.first + random_() % count;
  std::uint32_t port = find_free(node, space, first, range_.last);
  if (port == 0) port = find_free(node, space, range_.first, first);
  if (port == 0) return Error::NoAddress;
  last_used_ = static_cast<std::uint16_t>(port);
  owner.address.port = last_used_;
  owners_[{node, space, last_used_}][owner.id] = owner;
  return Error::None;
}

// In order, so that ports that are taken cost a step each and no search.
std::uint32_t PortTable::find_free(std::uint32_t node, PortSpace space, std::uint32_t first,
                                   std::uint32_t last) const {
  const auto is_taken = [&](auto at, std::uint32_t port) {
    return at != owners_.end() && at->first == Key{node, space, static_cast<std::uint16_t>(port)};
  };
  auto at = owners_.lower_bound({node, space, static_cast<std::uint16_t>(first)});
  for (std::uint32_t port = first; port <= last; ++port) {
    if (is_taken(at, port)) {
      ++at;
    } else if (port != last_used_) {
      return port;
    }
  }
  return 0;
}

PortOwner* PortTable::find(std::uint32_t node, PortSpace space, std::uint16_t port,
                           std::uint32_t id) {
  const auto at = owners_.find({node, space, port});
  if (at == owners_.end()) return nullptr;
  const auto owner = at->second.find(id);
  return owner == at->second.end() ? nullptr : &owner->second;
}

Error PortTable::listen(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id) {
  PortOwner* const owner = find(node, space, port, id);
  if (owner == nullptr) return Error::Invalid;
  if (owner->reuse) {
    const Error error = check(owners_.at({node, space, port}), *owner, false);
    if (error != Error::None) return error;
    owner->reuse = false;
  }
  owner->listens = true;
  return Error::None;
}

void PortTable::set_reuse(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id,
                          bool reuse) {
  if (PortOwner* const owner = find(node, space, port, id)) owner->reuse = reuse;
}

void PortTable::release(std::uint32_t node, PortSpace space, std::uint16_t port, std::uint32_t id) {
  const auto at = owners_.find({node, space, port});
  if (at == owners_.end()) return;
  at->second.erase(id);
  if (at->second.empty()) owners_.erase(at);
}

const PortOwner* PortTable::find_listener(std::uint32_t node, PortSpace space,
                                          const EndpointAddress& address) const {
  const auto at = owners_.find({node, space, address.port});
  if (at == owners_.end()) return nullptr;
  const PortOwner* best = nullptr;
  int best_rank = 0;
  for (const auto& [id, owner] : at->second) {
    if (!owner.listens) continue;
    int rank = 0;
    if (owner.address.ip == address.ip && owner.address.family == address.family) {
      rank = 3;
    } else if (takes_any_address(owner.address)) {
      const bool same = owner.address.family == address.family;
      const bool both = owner.address.family == Family::Ipv6 && address.family == Family::Ipv4;
      rank = same ? 2 : both && !owner.af_only ? 1 : 0;
    }
    if (rank > best_rank) {
      best = &owner;
      best_rank = rank;
    }
  }
  return best;
}

const PortTable::Owners& PortTable::owners(std::uint32_t node, PortSpace space,
                                           std::uint16_t port) const {
  static const Owners kNobody;
  const auto at = owners_.find({node, space, port});
  return at == owners_.end() ? kNobody : at->second;
}

std::vector<const PortOwner*> PortTable::listeners(std::uint32_t node, PortSpace space,
                                                   std::size_t most) const {
  std::vector<const PortOwner*> found;
  for (auto at = owners_.lower_bound({node, space, 0}); at != owners_.end() && found.size() < most;
       ++at) {
    if (std::get<0>(at->first) != node || std::get<1>(at->first) != space) break;
    for (const auto& [id, owner] : at->second) {
      if (owner.listens && found.size() < most) found.push_back(&owner);
    }
  }
  return found;
}

}  // namespace ib::services::rdma_cm
