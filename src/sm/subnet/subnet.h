// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnet: what a subnet manager has found: nodes, their ports, and the links between these.
//
// Plain arrays that name each other by index. A node keeps its place when it vanishes, so that it
// has it again when its GUID comes back. The manager's own node is the first one.
//
// A node is reached by a directed route [IBA1 14.2.2]: over the link by which it was found, and
// that node's own route.
#pragma once

#include "mad/agent.h"
#include "mad/directed_route.h"
#include "mad/smp.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace ib::sm {

inline constexpr std::uint32_t kNone = 0xffffffffu;
inline constexpr std::uint16_t kLastUnicastLid = 0xbfff;  // [IBA1 4.1.3]
inline constexpr std::uint8_t kNoRoute = 0xff;            // of a forwarding table

inline verbs::PortState state_of(const mad::PortInfo& info) {
  return static_cast<verbs::PortState>(info.speed_supported_state & 15);
}
inline constexpr std::uint32_t kIsSm = 1u << 1;  // of a CapabilityMask [IBA1 14.2.5.6]

struct Port {
  mad::PortInfo info;                // as it was last heard
  std::vector<std::uint16_t> pkeys;  // the table as it was last heard; empty: it was not
  std::uint64_t guid = 0;            // of an end port
  std::uint32_t node = 0;
  std::uint32_t peer = kNone;       // the port at the other end of its cable, if that has answered
  std::uint32_t last_peer = kNone;  // the last one that it had
  std::uint16_t lid = 0;            // that the manager has assigned
  std::uint8_t lmc = 0;
  std::uint8_t number = 0;
  bool is_known = false;   // its PortInfo was read
  bool is_silent = false;  // a cable is there, and what is behind it does not answer

  bool is_up() const { return is_known && state_of(info) >= verbs::PortState::Init; }
};

struct Node {
  mad::NodeInfo info;
  mad::SwitchInfo switch_info;
  std::array<char, mad::kSmpDataSize> description{};
  std::uint32_t first_port = 0;  // a switch begins with port 0, a channel adapter with port 1
  std::uint32_t port_count = 0;
  std::uint32_t reached_by = kNone;  // the port of another node whose peer is on this one
  std::uint8_t hops = 0;
  bool is_there = false;
  // Its tables are those that the manager has written.
  bool has_tables = false;

  bool is_switch() const {
    return info.node_type == static_cast<std::uint8_t>(mad::NodeType::Switch);
  }
  std::uint64_t guid() const { return info.node_guid; }
  std::uint8_t first_number() const { return is_switch() ? 0 : 1; }
};

struct Route {
  std::array<std::uint8_t, mad::kMostHops + 1> ports{};  // entry 0 is unused
  std::uint8_t hops = 0;
};

// classes: allow(methods) look-ups of what is stored, and the routes to it
class Subnet {
 public:
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Port> ports() const { return ports_; }
  Node& node(std::uint32_t index) { return nodes_[index]; }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  Port& port(std::uint32_t index) { return ports_[index]; }
  const Port& port(std::uint32_t index) const { return ports_[index]; }
  const Node& node_of(const Port& port) const { return nodes_[port.node]; }
  Node& node_of(const Port& port) { return nodes_[port.node]; }
  // Index of a port by its number; kNone if the node has none of it.
  std::uint32_t port_of(std::uint32_t node, std::uint8_t number) const;
  std::uint32_t find(std::uint64_t node_guid) const;
  std::uint32_t find_port(std::uint64_t port_guid) const;  // an end port that is there
  // Of two end ports with the same one the first is found, as long as it is there.
  void set_guid(std::uint32_t port, std::uint64_t port_guid);
  // The port that the manager sends by; kNone before it was found.
  std::uint32_t own_port() const { return own_port_; }
  void set_own_port(std::uint32_t port) { own_port_ = port; }

  // A node that answers. One with the GUID of a node that has vanished takes its place.
  std::uint32_t add(const mad::NodeInfo& info);
  // Neither of them has another link.
  void connect(std::uint32_t a, std::uint32_t b);
  void disconnect(std::uint32_t port);
  // Finds the shortest directed routes; what none leads to is there no longer. Returns those nodes.
  std::vector<std::uint32_t> update_routes();
  // The same in the middle of a discovery: nodes that no route is known to stay.
  void find_routes();
  // Whether a node is reached over the cable of this port.
  bool leads_on(std::uint32_t port) const {
    const std::uint32_t beyond = beyond_[port];
    return beyond != kNone && nodes_[beyond].reached_by == port;
  }
  // Whether all links of its route are there still.
  bool has_whole_route(std::uint32_t node) const;

  // Whether it has an address: port 0 of a switch, and each port of a channel adapter.
  bool is_end_port(const Port& port) const {
    return !node_of(port).is_switch() || port.number == 0;
  }
  // The port whose M_Key protects it [IBA1 14.2.4].
  const Port& keeper_of(const Port& port) const;
  // An end port that takes part in the subnet.
  bool is_served(const Port& port) const;
  // To a node by this port, or over the cable of this port. Returns false if the way is not known,
  // or has more than 63 hops.
  bool route_to(std::uint32_t port, Route& route) const;
  bool route_over(std::uint32_t port, Route& route) const;

  std::string name_of(const Node& node) const;  // "spine-1 (0x0002...)"
  std::string name_of(const Port& port) const;  // "port 3 of spine-1 (0x0002...)"
  std::uint32_t switch_count() const;

 private:
  bool route_to_node(std::uint32_t node, Route& route) const;
  void walk(std::vector<bool>& is_reached);
  void forget(Node& node);

  std::vector<Node> nodes_;
  std::vector<Port> ports_;
  std::vector<std::uint32_t> beyond_;  // by port: the node of its peer; close together
  std::unordered_map<std::uint64_t, std::uint32_t> by_guid_;       // nodes
  std::unordered_map<std::uint64_t, std::uint32_t> by_port_guid_;  // end ports
  std::uint32_t own_port_ = kNone;
};

template <class T>
T read(const mad::SmpData& data) {
  T value;
  static_assert(sizeof value <= sizeof data);
  std::memcpy(static_cast<void*>(&value), data.data(), sizeof value);
  return value;
}
template <class T>
mad::SmpData as_data(const T& value) {
  mad::SmpData data{};
  static_assert(sizeof value <= sizeof data);
  std::memcpy(data.data(), &value, sizeof value);
  return data;
}

}  // namespace ib::sm
