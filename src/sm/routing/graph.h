// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Graph: switches and the cables between them, as routing engines see a subnet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ib::sm {

class Subnet;

struct Link {
  std::uint32_t to = 0;      // switch
  std::uint8_t port = 0;     // of the switch that has this entry
  std::uint8_t to_port = 0;  // of the other one
  auto operator<=>(const Link&) const = default;
};

// LIDs that a switch has at a port of its own.
struct Destination {
  std::uint16_t lid = 0;
  std::uint16_t count = 1;  // 2^LMC
  std::uint8_t port = 0;    // 0: the switch itself
  bool is_adapter() const { return port != 0; }
  bool operator==(const Destination&) const = default;
};

// All links to one other switch.
struct Neighbor {
  std::uint32_t to = 0;
  std::uint32_t first = 0;  // in `links`
  std::uint32_t count = 0;
  bool operator==(const Neighbor&) const = default;
};

struct GraphSwitch {
  std::vector<Link> links;  // in the order of neighbors and ports
  std::vector<Neighbor> neighbors;
  std::vector<Destination> destinations;
  bool has_adapters = false;
  bool operator==(const GraphSwitch&) const = default;
};

struct Graph {
  std::vector<GraphSwitch> switches;
  std::uint16_t top_lid = 0;

  bool operator==(const Graph&) const = default;
  std::size_t size() const { return switches.size(); }
  void add_link(std::uint32_t a, std::uint8_t a_port, std::uint32_t b, std::uint8_t b_port) {
    if (a == b) return;  // no way leads over it
    switches[a].links.push_back({b, a_port, b_port});
    switches[b].links.push_back({a, b_port, a_port});
  }
  void add_destination(std::uint32_t at, const Destination& destination) {
    switches[at].destinations.push_back(destination);
    if (destination.is_adapter()) switches[at].has_adapters = true;
    top_lid =
        std::max(top_lid, static_cast<std::uint16_t>(destination.lid + destination.count - 1));
  }
  // To be called when all links are there.
  void finish() {
    for (GraphSwitch& each : switches) {
      std::ranges::sort(each.links);
      each.neighbors.clear();
      for (std::uint32_t i = 0; i < each.links.size(); ++i) {
        const bool is_next = each.neighbors.empty() || each.neighbors.back().to != each.links[i].to;
        if (is_next) each.neighbors.push_back({each.links[i].to, i, 0});
        ++each.neighbors.back().count;
      }
    }
  }
};

// Of a subnet. `node_of`: by switch of the graph, the node in the subnet.
Graph make_graph(const Subnet& subnet, std::vector<std::uint32_t>& node_of);

}  // namespace ib::sm
