// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnets to draw in tests, out of presets; all is well in them.
#pragma once

#include "fabric/picture/shown_subnet.h"
#include "fabric/topology/presets.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ib::fabric {

inline ShownSubnet shown_preset(const char* preset) {
  std::string reason;
  auto topology = preset_topology(preset, reason);
  EXPECT_TRUE(topology) << reason;
  ShownSubnet subnet;
  if (!topology) return subnet;
  for (const TopologyElement& from : topology->elements) {
    ShownElement& element = subnet.elements.emplace_back();
    element.is_switch = from.is_switch();
    element.guid = from.node_guid;
    element.name = from.description;
    element.node = element.is_switch ? "" : from.description.substr(0, from.description.find(' '));
    for (std::uint32_t number = 1; number <= from.ports; ++number) {
      element.ports.emplace_back().number = number;
    }
  }
  const auto join = [&subnet](TopologyEnd own, TopologyEnd other) {
    ShownPort& port = subnet.elements[own.element].ports[own.port - 1];
    port.state = LinkState::Active;
    port.rate = "4xEDR";
    port.peer = other.element;
    port.peer_port = other.port;
  };
  for (const TopologyCable& cable : topology->cables) {
    join(cable.a, cable.b);
    join(cable.b, cable.a);
  }
  return subnet;
}

inline std::uint32_t place_of(const ShownSubnet& subnet, const std::string& name) {
  for (std::uint32_t i = 0; i < subnet.elements.size(); ++i) {
    if (subnet.elements[i].name == name || subnet.elements[i].node == name) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// Sets the state of a link, at both ends.
inline void set_link(ShownSubnet& subnet, TopologyEnd end, LinkState state) {
  ShownPort& port = subnet.elements[end.element].ports[end.port - 1];
  port.state = state;
  subnet.elements[port.peer].ports[port.peer_port - 1].state = state;
}

}  // namespace ib::fabric
