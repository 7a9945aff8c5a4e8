// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/routing/min_hop.h"

#include "sm/routing/tables.h"

namespace ib::sm {

bool MinHop::prepare(const Graph& graph, std::string& /*reason*/) {
  graph_ = &graph;
  hops_.compute(graph);
  return true;
}

void MinHop::fill(std::uint32_t at, std::span<std::uint8_t> table) const {
  fill_balanced(*graph_, hops_, nullptr, at, table);
}

}  // namespace ib::sm
