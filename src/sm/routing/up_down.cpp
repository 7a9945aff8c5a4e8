// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/up_down.h"

#include "sm/routing/levels.h"
#include "sm/routing/tables.h"

namespace ib::sm {

// Levels tell nothing where all switches have adapters: an order of them by number only would lead
// far around.
bool UpDown::prepare(const Graph& graph, std::string& /*reason*/) {
  graph_ = &graph;
  const std::vector<std::uint32_t> levels = levels_of(graph);
  const bool has_levels = std::ranges::any_of(levels, [](std::uint32_t level) { return level; });
  if (has_levels) hops_.compute_up_down(graph, order_by_level(levels));
  if (!has_levels || !hops_.joins_adapters(graph)) {
    hops_.compute_up_down(graph, order_by_root(graph));
  }
  find_detours();
  return true;
}

void UpDown::fill(std::uint32_t at, std::span<std::uint8_t> table) const {
  fill_balanced(*graph_, hops_, detour(), at, table);
}

}  // namespace ib::sm
