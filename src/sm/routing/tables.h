// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Linear tables out of a HopTable: which of the ports that begin a way has which LID.
#pragma once

#include "sm/routing/hops.h"

#include <cstdint>
#include <span>

namespace ib::sm {

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
