// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All that a picture of a subnet is made of: its elements, their ports, cables, counters and
// programs, as plain data. Texts are as they came; writers take them through
// fabric/picture/escape.h.
#pragma once

#include "fabric/port.h"
#include "fabric/topology/topology.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric {

// Of a link: the worse of its two ends. From good to bad.
enum class LinkState : std::uint8_t { Active, Armed, Init, Down };
inline constexpr std::size_t kLinkStates = 4;

struct ShownTraffic {
  std::uint64_t data = 0;  // in units of 4 bytes, headers included
  std::uint64_t packets = 0;
  std::uint64_t unicast = 0;  // packets
  std::uint64_t multicast = 0;
  bool operator==(const ShownTraffic&) const = default;
};

// A counter that is not 0 and counts no traffic.
struct ShownTrouble {
  std::string name;  // "symbol_errors"
  std::uint64_t count = 0;
  bool operator==(const ShownTrouble&) const = default;
};

struct ShownPort {
  std::uint32_t number = 1;
  LinkState state = LinkState::Down;
  std::uint32_t lid = 0;          // 0: none
  std::string rate;               // "4xEDR"
  std::uint32_t peer = kNoIndex;  // the element at the other end of its cable
  std::uint32_t peer_port = 0;
  ShownTraffic sent, received;
  std::vector<ShownTrouble> troubles;
  std::uint64_t errors = 0;  // of the troubles, but for what follows when a link goes down
  bool has_errors = false;   // that are worth a warning

  std::uint64_t data() const { return sent.data + received.data; }
  std::uint64_t packets() const { return sent.packets + received.packets; }
  bool operator==(const ShownPort&) const = default;
};

struct ShownProgram {
  std::string name;
  std::int64_t pid = 0;
  bool operator==(const ShownProgram&) const = default;
};

struct ShownElement {
  bool is_switch = false;
  bool is_there = true;   // an adapter that is present; a switch with power
  bool is_ideal = false;  // no element, but the network between ports without a cable
  std::uint64_t guid = 0;
  std::uint32_t lid = 0;               // of a switch
  std::string name;                    // NodeDescription
  std::string node;                    // of an adapter
  std::string hca;                     // its name on the node
  std::vector<ShownProgram> programs;  // that run on the node
  std::vector<ShownPort> ports;        // without port 0 of a switch

  const ShownPort* find_port(std::uint32_t number) const {
    for (const ShownPort& port : ports) {
      if (port.number == number) return &port;
    }
    return nullptr;
  }
  bool operator==(const ShownElement&) const = default;
};

struct ShownSubnet {
  std::vector<ShownElement> elements;
  std::vector<TopologyEnd> route;         // the ports by which a packet leaves, in its order
  std::vector<std::uint32_t> route_ends;  // elements, also those that it does not reach
  std::string route_text;                 // "node0 to node7: it arrives"
};

const char* link_state_name(LinkState state);
// "symbol errors 5, transmit discards 1"
std::string troubles_text(const ShownPort& port);

}  // namespace ib::fabric
