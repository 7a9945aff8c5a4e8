// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of ports, for `softib counters`: out of a subnet as pictures have it
// (softib/picture/subnet_reading.h), or what came between two readings of it.
#pragma once

#include "fabric/picture/shown_subnet.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

struct PortCount {
  std::string element;  // "switch-1-0", "node3", or "node3/softib1" of another HCA than the first
  std::string node;     // of an adapter
  std::string hca;
  std::uint64_t guid = 0;  // of the element
  std::uint32_t number = 1;
  std::uint32_t lid = 0;
  fabric::LinkState state = fabric::LinkState::Down;
  bool is_switch = false;
  bool is_asked_for = false;  // by its number
  std::string peer;           // the element at the other end of its cable; empty: no cable
  std::uint32_t peer_port = 0;
  fabric::ShownTraffic sent, received;
  std::vector<fabric::ShownTrouble> troubles;

  bool is_quiet() const { return sent.packets == 0 && received.packets == 0 && troubles.empty(); }
};

std::vector<PortCount> port_counts(const fabric::ShownSubnet& subnet);

// Returns those of an element, or one of its ports: "node3", "node3/softib1", "switch-1-0", a GUID
// as 0x..., each with :PORT or without; none if there is no such element or port.
std::vector<PortCount> ports_named(const std::vector<PortCount>& all, std::string_view name);
// The names that there are, each once.
std::vector<std::string> element_names(const std::vector<PortCount>& all);

// Subtracts an earlier reading. A counter that is less than it was began again at 0; so did one of
// a port that was not there.
std::vector<PortCount> counted_since(const std::vector<PortCount>& before,
                                     std::vector<PortCount> now);

}  // namespace ib::softib
