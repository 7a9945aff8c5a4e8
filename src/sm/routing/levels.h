// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Levels of switches, and the orders that up/down routing goes by.
#pragma once

#include "sm/routing/graph.h"

#include <cstdint>
#include <vector>

namespace ib::sm {

// By switch: hops to the next one with channel adapters. Where there is none, all are 0.
std::vector<std::uint32_t> levels_of(const Graph& graph);
// Places in an order (HopTable): by level, the uppermost first.
std::vector<std::uint32_t> order_by_level(const std::vector<std::uint32_t>& levels);
// By the distance from one switch, and in what is not joined to it from another one: all that are
// joined have ways up, then down, to each other.
std::vector<std::uint32_t> order_by_root(const Graph& graph);

}  // namespace ib::sm
