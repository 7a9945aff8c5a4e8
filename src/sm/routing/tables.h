// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Linear tables out of a HopTable: which of the ports that begin a way has which LID.
#pragma once

#include "sm/routing/hops.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ib::sm {

// Calls `use` for each port by which ways to another switch begin. `detour`: where there is none.
template <class Use>
void each_first_port(const Graph& graph, const HopTable& hops, const HopTable* detour,
                     std::uint32_t at, std::uint32_t to, const Use& use) {
  const std::vector<Link>& links = graph.switches[at].links;
  const auto add = [&](const Neighbor& neighbor) {
    for (std::uint32_t i = 0; i < neighbor.count; ++i) use(links[neighbor.first + i].port);
  };
  if (detour == nullptr || hops.is_reached(at, to)) {
    hops.each_first(graph, at, to, add);
  } else {
    detour->each_first(graph, at, to, add);
  }
}

// LIDs of adapters by port, in a table that is filled: counted with the first choice.
class Loads {
 public:
  Loads(const Graph& graph, std::span<const std::uint8_t> table) : graph_(graph), table_(table) {}
  // One of these ports; packets to channel adapters are a load.
  std::uint8_t take_least(std::span<const std::uint8_t> ports, bool is_load);

 private:
  const Graph& graph_;
  std::span<const std::uint8_t> table_;
  std::vector<std::uint32_t> by_port_;
};

// Ports share the LIDs of channel adapters evenly. `detour`: ways for switches that `hops` has none
// to. Without it those LIDs have none.
void fill_balanced(const Graph& graph, const HopTable& hops, const HopTable* detour,
                   std::uint32_t at, std::span<std::uint8_t> table);

// Of several ports the one with the number ordinals[LID] / divisor, counted round and round: a rule
// that switches of one level share.
void fill_by_ordinal(const Graph& graph, const HopTable& hops, const HopTable* detour,
                     std::uint32_t at, std::span<const std::uint32_t> ordinals,
                     std::uint32_t divisor, std::span<std::uint8_t> table);

}  // namespace ib::sm
