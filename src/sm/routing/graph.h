// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Graph: switches and the cables between them, as routing engines see a subnet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
  std::uint16_t last() const { return static_cast<std::uint16_t>(lid + count - 1); }
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

  void add_destination(const Destination& destination) {
    destinations.push_back(destination);
    if (destination.is_adapter()) has_adapters = true;
  }
  // To be called when all links are there.
  void finish() {
    std::ranges::sort(links);
    neighbors.clear();
    for (std::uint32_t i = 0; i < links.size(); ++i) {
      const bool is_next = neighbors.empty() || neighbors.back().to != links[i].to;
      if (is_next) neighbors.push_back({links[i].to, i, 0});
      ++neighbors.back().count;
    }
  }
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
    switches[at].add_destination(destination);
    top_lid = std::max(top_lid, destination.last());
  }
  // To be called when all links are there.
  void finish() {
    for (GraphSwitch& each : switches) each.finish();
  }
};

// Of a subnet. `node_of`: by switch of the graph, the node in the subnet; in their order.
// `keeps_gone`: those that it had and that are gone keep their places, without links and LIDs.
Graph make_graph(const Subnet& subnet, bool keeps_gone, std::vector<std::uint32_t>& node_of);

// How a graph has become another one with the same switches, with less links, and other LIDs at
// switches that had some of adapters already.
struct GraphChange {
  std::vector<std::uint32_t> ends;      // switches that have lost links
  std::vector<std::uint32_t> arrivals;  // switches with LIDs that they had not
  bool is_any = false;                  // else it is the same graph
};
// Nothing if it has more, so that ways over it are to be found.
std::optional<GraphChange> change_between(const Graph& before, const Graph& now);
// Makes these nodes again in the graph of a subnet.
std::optional<GraphChange> update_graph(const Subnet& subnet,
                                        const std::vector<std::uint32_t>& node_of,
                                        std::span<const std::uint32_t> nodes, Graph& graph);

}  // namespace ib::sm
