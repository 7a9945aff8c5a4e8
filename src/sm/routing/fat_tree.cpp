// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/fat_tree.h"

#include "sm/routing/levels.h"
#include "sm/routing/tables.h"
#include "sm/routing/up_down.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::sm {

// Each cable joins two levels that follow each other.
bool FatTree::number_levels(std::string& reason) {
  levels_ = levels_of(*graph_);
  std::vector<std::uint32_t> ways_up(*std::ranges::max_element(levels_) + 1, 0);
  for (std::uint32_t i = 0; i < graph_->size(); ++i) {
    std::uint32_t up = 0;
    for (const Link& link : graph_->switches[i].links) {
      const std::uint32_t here = levels_[i];
      const std::uint32_t there = levels_[link.to];
      if (here == there) {
        reason =
            fmt::format("a cable joins two switches of level {} (0: with channel adapters)", here);
        return false;
      }
      if (there > here) ++up;
    }
    ways_up[levels_[i]] = std::max(ways_up[levels_[i]], up);
  }
  divisors_.assign(ways_up.size(), 1);
  for (std::size_t level = 1; level < ways_up.size(); ++level) {
    // Larger ones are all the same: no ordinal is as large.
    const std::uint64_t product =
        std::uint64_t{divisors_[level - 1]} * std::max(ways_up[level - 1], 1u);
    divisors_[level] = static_cast<std::uint32_t>(std::min<std::uint64_t>(product, 1u << 16));
  }
  return true;
}

// Those that have no number so far.
void FatTree::number_adapters(const GraphSwitch& at) {
  for (const Destination& destination : at.destinations) {
    if (!destination.is_adapter()) continue;
    for (std::uint32_t i = 0; i < destination.count; ++i) {
      std::uint32_t& ordinal = ordinals_[destination.lid + i];
      if (ordinal == 0) ordinal = next_ordinal_++;
    }
  }
}

bool FatTree::prepare(const Graph& graph, std::string& reason) {
  graph_ = &graph;
  if (graph.size() == 0) {
    reason = "there is no switch";
    return false;
  }
  if (!number_levels(reason)) return false;
  hops_.compute_up_down(graph, order_by_level(levels_));
  if (!hops_.joins_adapters(graph)) {
    reason = "some switches with channel adapters have no common switch above them";
    return false;
  }
  find_detours();
  ordinals_.assign(std::size_t{graph.top_lid} + 1, 0);
  next_ordinal_ = 0;
  for (const GraphSwitch& each : graph.switches) number_adapters(each);
  return true;
}

void FatTree::fill(std::uint32_t at, std::span<std::uint8_t> table) const {
  fill_by_ordinal(*graph_, hops_, detour(), at, ordinals_, divisors_[levels_[at]], table);
}

bool FatTree::adapt(const GraphChange& change, StaleWays& stale) {
  ordinals_.resize(std::size_t{graph_->top_lid} + 1);
  for (const std::uint32_t at : change.arrivals) number_adapters(graph_->switches[at]);
  return HopEngine::adapt(change, stale);
}

std::uint8_t FatTree::choose(std::uint32_t at, std::uint16_t lid, bool /*is_adapter*/,
                             std::span<const std::uint8_t> ports, Loads& /*loads*/) const {
  return ports[ordinals_[lid] / divisors_[levels_[at]] % ports.size()];
}

}  // namespace ib::sm
