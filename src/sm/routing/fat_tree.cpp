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

void FatTree::number_adapters() {
  ordinals_.assign(std::size_t{graph_->top_lid} + 1, 0);
  std::uint32_t next = 0;
  for (const GraphSwitch& each : graph_->switches) {
    for (const Destination& destination : each.destinations) {
      if (!destination.is_adapter()) continue;
      for (std::uint32_t i = 0; i < destination.count; ++i) ordinals_[destination.lid + i] = next++;
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
  detour_ = detour_for(graph, hops_);
  number_adapters();
  return true;
}

void FatTree::fill(std::uint32_t at, std::span<std::uint8_t> table) const {
  fill_by_ordinal(*graph_, hops_, detour_ ? &*detour_ : nullptr, at, ordinals_,
                  divisors_[levels_[at]], table);
}

}  // namespace ib::sm
