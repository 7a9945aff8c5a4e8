// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/addressing/ip_interfaces.h"

#include <algorithm>
#include <utility>

namespace ib::fabric {

bool IpInterface::has(const verbs::Gid& ip) const {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&ip](const Address& address) { return address.ip == ip; });
}

void IpInterfaces::enter(std::uint32_t node, const IpInterface& interface) {
  for (const IpInterface::Address& address : interface.addresses) {
    nodes_by_address_.emplace(address.ip, node);
  }
}

void IpInterfaces::withdraw(std::uint32_t node, const IpInterface& interface) {
  for (const IpInterface::Address& address : interface.addresses) {
    const auto [first, last] = nodes_by_address_.equal_range(address.ip);
    const auto found =
        std::find_if(first, last, [node](const auto& entry) { return entry.second == node; });
    if (found != last) nodes_by_address_.erase(found);
  }
}

Status IpInterfaces::set(std::uint32_t node, IpInterface interface) {
  std::vector<IpInterface>& all = by_node_[node];
  const auto found = std::find_if(all.begin(), all.end(), [&interface](const IpInterface& one) {
    return one.name == interface.name;
  });
  if (found == all.end() && all.size() >= kMostOfNode) return Status::LimitExceeded;
  enter(node, interface);
  if (found == all.end()) {
    all.push_back(std::move(interface));
    return Status::Ok;
  }
  withdraw(node, *found);
  *found = std::move(interface);
  return Status::Ok;
}

void IpInterfaces::remove(std::uint32_t node, std::string_view name, std::uint64_t owner) {
  const auto at = by_node_.find(node);
  if (at == by_node_.end()) return;
  std::erase_if(at->second, [&](const IpInterface& one) {
    const bool goes = one.name == name && one.owner == owner;
    if (goes) withdraw(node, one);
    return goes;
  });
  if (at->second.empty()) by_node_.erase(at);
}

void IpInterfaces::remove_all_of(std::uint64_t owner) {
  for (auto& [node, all] : by_node_) {
    std::erase_if(all, [&, number = node](const IpInterface& one) {
      if (one.owner == owner) withdraw(number, one);
      return one.owner == owner;
    });
  }
  std::erase_if(by_node_, [](const auto& entry) { return entry.second.empty(); });
}

std::span<const IpInterface> IpInterfaces::of(std::uint32_t node) const {
  const auto at = by_node_.find(node);
  return at != by_node_.end() ? std::span<const IpInterface>(at->second)
                              : std::span<const IpInterface>();
}

const IpInterface* IpInterfaces::find(std::uint32_t node, std::string_view name) const {
  for (const IpInterface& one : of(node)) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::vector<IpInterfaces::Holder> IpInterfaces::with_address(const verbs::Gid& ip) const {
  std::vector<std::uint32_t> nodes;
  const auto [first, last] = nodes_by_address_.equal_range(ip);
  for (auto entry = first; entry != last; ++entry) nodes.push_back(entry->second);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<Holder> holders;
  for (const std::uint32_t node : nodes) {
    for (const IpInterface& one : of(node)) {
      if (one.has(ip)) holders.push_back({node, &one});
    }
  }
  return holders;
}

}  // namespace ib::fabric
