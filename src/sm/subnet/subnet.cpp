// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The results of sm/sweep/discovery.cpp are entered here, with the routes to them; routing, LIDs
// and setup read them.
#include "sm/subnet/subnet.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::sm {

std::uint32_t Subnet::port_of(std::uint32_t node, std::uint8_t number) const {
  const Node& at = nodes_[node];
  const std::uint32_t place = std::uint32_t{number} - at.first_number();
  return place < at.port_count ? at.first_port + place : kNone;
}

std::uint32_t Subnet::find(std::uint64_t node_guid) const {
  const auto found = by_guid_.find(node_guid);
  return found != by_guid_.end() ? found->second : kNone;
}

std::uint32_t Subnet::find_port(std::uint64_t port_guid) const {
  const auto found = by_port_guid_.find(port_guid);
  if (found == by_port_guid_.end()) return kNone;
  const Port& port = ports_[found->second];
  return port.guid == port_guid && is_served(port) ? found->second : kNone;
}

void Subnet::set_guid(std::uint32_t port, std::uint64_t port_guid) {
  ports_[port].guid = port_guid;
  if (port_guid != 0 && find_port(port_guid) == kNone) by_port_guid_[port_guid] = port;
}

std::uint32_t Subnet::add(const mad::NodeInfo& info) {
  const bool is_switch = info.node_type == static_cast<std::uint8_t>(mad::NodeType::Switch);
  const std::uint32_t count = info.num_ports + (is_switch ? 1u : 0u);
  const auto [found, is_new] =
      by_guid_.try_emplace(info.node_guid, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.emplace_back();
  Node& node = nodes_[found->second];
  const bool has_room = !is_new && node.port_count == count && node.is_switch() == is_switch;
  node.info = info;
  node.is_there = true;
  if (has_room) return found->second;
  node.first_port = static_cast<std::uint32_t>(ports_.size());
  node.port_count = count;
  beyond_.resize(ports_.size() + count, kNone);
  for (std::uint32_t i = 0; i < count; ++i) {
    Port& port = ports_.emplace_back();
    port.node = found->second;
    port.number = static_cast<std::uint8_t>(i + node.first_number());
  }
  return found->second;
}

void Subnet::connect(std::uint32_t a, std::uint32_t b) {
  ports_[a].peer = ports_[a].last_peer = b;
  ports_[b].peer = ports_[b].last_peer = a;
  beyond_[a] = ports_[b].node;
  beyond_[b] = ports_[a].node;
  ports_[a].is_silent = ports_[b].is_silent = false;
}

void Subnet::disconnect(std::uint32_t port) {
  const std::uint32_t peer = ports_[port].peer;
  if (peer == kNone) return;
  ports_[port].peer = ports_[peer].peer = kNone;
  beyond_[port] = beyond_[peer] = kNone;
}

// All that was heard of a node that has vanished may be wrong when it comes back.
void Subnet::forget(Node& node) {
  node.is_there = node.has_tables = false;
  node.reached_by = kNone;
  for (std::uint32_t i = 0; i < node.port_count; ++i) {
    disconnect(node.first_port + i);
    Port& port = ports_[node.first_port + i];
    port.is_known = port.is_silent = false;
    port.pkeys.clear();
  }
}

// A channel adapter sends nothing on, and of the own one only the own port leads out.
void Subnet::walk(std::vector<bool>& is_reached) {
  is_reached.assign(nodes_.size(), false);
  std::vector<std::uint32_t> queue{ports_[own_port_].node};
  is_reached[queue[0]] = true;
  nodes_[queue[0]].hops = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const Node& at = nodes_[queue[i]];
    if (i != 0 && !at.is_switch()) continue;
    for (std::uint32_t p = at.first_port; p < at.first_port + at.port_count; ++p) {
      const std::uint32_t next = beyond_[p];
      if (next == kNone || is_reached[next] || (!at.is_switch() && p != own_port_)) continue;
      is_reached[next] = true;
      nodes_[next].reached_by = p;
      nodes_[next].hops = static_cast<std::uint8_t>(std::min(at.hops + 1, 255));
      queue.push_back(next);
    }
  }
}

void Subnet::find_routes() {
  std::vector<bool> is_reached;
  if (own_port_ != kNone) walk(is_reached);
}

std::vector<std::uint32_t> Subnet::update_routes() {
  std::vector<std::uint32_t> gone;
  if (own_port_ == kNone) return gone;
  std::vector<bool> is_reached;
  walk(is_reached);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (is_reached[i] || !nodes_[i].is_there) continue;
    forget(nodes_[i]);
    gone.push_back(i);
  }
  return gone;
}

const Port& Subnet::keeper_of(const Port& port) const {
  const Node& node = node_of(port);
  return node.is_switch() ? ports_[node.first_port] : port;
}

bool Subnet::is_served(const Port& port) const {
  const Node& node = node_of(port);
  if (!node.is_there || !port.is_known) return false;
  if (node.is_switch()) return port.number == 0;
  return port.peer != kNone || &port == &ports_[own_port_];
}

bool Subnet::has_whole_route(std::uint32_t node) const {
  while (node != ports_[own_port_].node) {
    const std::uint32_t by = nodes_[node].reached_by;
    if (by == kNone || beyond_[by] != node) return false;
    node = ports_[by].node;
  }
  return true;
}

bool Subnet::route_to_node(std::uint32_t node, Route& route) const {
  const std::uint32_t own = ports_[own_port_].node;
  route.hops = nodes_[node].hops;
  if (route.hops > mad::kMostHops) return false;
  std::uint32_t left = route.hops;
  while (node != own) {
    const std::uint32_t by = nodes_[node].reached_by;
    if (by == kNone || left == 0) return false;
    route.ports[left--] = ports_[by].number;
    node = ports_[by].node;
  }
  return left == 0;
}

bool Subnet::route_to(std::uint32_t port, Route& route) const {
  if (port == own_port_) {
    route.hops = 0;
    return true;
  }
  const Port& to = ports_[port];
  if (node_of(to).is_switch()) return route_to_node(to.node, route);
  return to.peer != kNone && route_over(to.peer, route);
}

bool Subnet::route_over(std::uint32_t port, Route& route) const {
  const Port& out = ports_[port];
  const bool is_own = out.node == ports_[own_port_].node;
  if (!node_of(out).is_switch() && !(is_own && port == own_port_)) return false;
  if (!route_to_node(out.node, route) || route.hops >= mad::kMostHops) return false;
  route.ports[++route.hops] = out.number;
  return true;
}

std::string Subnet::name_of(const Node& node) const {
  std::string name;
  for (const char letter : node.description) {
    if (letter == '\0') break;
    name += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return name.empty() ? fmt::format("{:#018x}", node.guid())
                      : fmt::format("{} ({:#018x})", name, node.guid());
}

std::string Subnet::name_of(const Port& port) const {
  return fmt::format("port {} of {}", port.number, name_of(node_of(port)));
}

std::uint32_t Subnet::switch_count() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      nodes_, [](const Node& node) { return node.is_there && node.is_switch(); }));
}

}  // namespace ib::sm
