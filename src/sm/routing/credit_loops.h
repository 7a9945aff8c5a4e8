// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Credit loops: buffers of links that wait for each other in a circle, so that packets on them may
// stand still for always. Found in the graph of dependencies between channels: a link in one
// direction, and a lane on it.
#pragma once

#include "sm/routing/engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ib::sm {

using Tables = std::vector<std::vector<std::uint8_t>>;  // by switch, then by LID

Tables fill_tables(const Graph& graph, const Engine& engine);
// Ways of data: from switches with channel adapters to LIDs of those. Returns a description of a
// circle; empty if there is none.
std::string find_credit_loop(const Graph& graph, const Tables& tables, const Engine& engine);

// Whether each end port is reached from each switch that a way joins to it, by following tables.
// Returns a description of a pair for which that is not so; empty if there is none.
std::string find_unreached(const Graph& graph, const Tables& tables);

}  // namespace ib::sm
