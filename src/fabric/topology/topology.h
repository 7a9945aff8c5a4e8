// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topology: the elements of an InfiniBand subnet and the cables between their ports, as plain data.
//
// Presets make one; files are read into one and written from one. It is a description: nothing in
// it has a state but the cables, and every value may be wrong until check() has seen it.
#pragma once

#include "base/result.h"
#include "fabric/graph.h"
#include "fabric/port.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric {

// Numbers of ports are bytes. In tables of a switch, 255 stands for no port [IBA1 18.2.4.3.3].
inline constexpr std::uint32_t kMaxSwitchPorts = 254;
inline constexpr std::uint32_t kMaxAdapterPorts = 255;
inline constexpr std::uint32_t kMaxTopologyLids = kLastUnicastLid;  // each end port has one
inline constexpr std::uint32_t kMaxTopologyPorts = 1u << 20;        // of all elements
inline constexpr std::size_t kMaxDescription = 64;                  // bytes [IBA1 14.2.5.2]

struct TopologyElement {
  ElementKind kind = ElementKind::ChannelAdapter;
  bool is_router = false;  // of a channel adapter: its NodeType is that of a router
  std::uint64_t node_guid = 0;
  std::string description;      // NodeDescription; need not be unique
  std::uint32_t ports = 1;      // without port 0 of a switch
  bool enhanced_port0 = false;  // of a switch [IBA1 18.2.4.1]
  std::uint64_t system_image_guid = 0;
  std::uint32_t vendor = 0;  // 24 bits; 0: the file has none
  std::uint32_t device = 0;  // 16 bits
  // By end port: of port 0 of a switch, of port 1 and on of a channel adapter. Empty: as
  // end_port_guid() says.
  std::vector<std::uint64_t> port_guids;
  std::vector<std::uint16_t> lids;  // the same order; 0: none. Empty: none has one
  std::uint8_t lmc = 0;

  bool is_switch() const { return kind == ElementKind::Switch; }
  std::uint32_t end_ports() const { return is_switch() ? 1 : ports; }
  bool operator==(const TopologyElement&) const = default;
};

// Of the end port `index` (of a channel adapter: its number less 1). Without GUIDs of its own, a
// switch's is the node GUID, an adapter's is the node GUID and the number of the port.
std::uint64_t end_port_guid(const TopologyElement& element, std::uint32_t index);

struct TopologyEnd {
  std::uint32_t element = 0;  // index in the topology
  std::uint32_t port = 1;     // 1-based
  auto operator<=>(const TopologyEnd&) const = default;
};

struct TopologyCable {
  TopologyEnd a, b;
  std::uint8_t width = 2;   // fabric::Port::width
  std::uint8_t speed = 32;  // fabric::Port::speed
  bool is_up = true;
  auto operator<=>(const TopologyCable&) const = default;
};

struct Topology {
  std::vector<TopologyElement> elements;
  std::vector<TopologyCable> cables;
  bool operator==(const Topology&) const = default;
};

// Returns InvalidParameter or LimitExceeded if it is no subnet that can exist. `reason` is then a
// sentence for the user that says which value of what is wrong, and what would be right.
Status check(const Topology& topology, std::string& reason);

// The same subnet in the one order that does not depend on who wrote it down: switches before
// channel adapters, by GUID; cables by their ends. Two topologies are the same subnet if these are
// equal.
Topology sorted(Topology topology);

// For messages: `switch "spine-1" (0x0253468000010000)`, `port 3 of switch ...`.
std::string element_text(const TopologyElement& element);
std::string end_text(const Topology& topology, TopologyEnd end);

}  // namespace ib::fabric
