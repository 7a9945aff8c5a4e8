// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The place of a process among those that mpirun, mpiexec or srun has started, from the variables
// that these set for each of them.
#pragma once

#include "softib/launch/environment.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

// The word that `softib run --node` takes for "the node of this rank".
inline constexpr const char* kNodeOfRank = "auto";

struct Rank {
  std::size_t number = 0;
  std::size_t of = 1;  // greater than number
};

// Returns nothing if no launcher has started this process, or its variables make no sense.
std::optional<Rank> rank_of(const Environment& environment);

// Ranks fill the nodes in blocks, as mpirun fills hosts: with 4 ranks on 2 nodes, 0 and 1 are on
// the first one. `nodes` is not 0.
std::size_t node_index(const Rank& rank, std::size_t nodes);

// The number of the node of this process. Throws CliError(Usage) if it is no rank.
std::size_t node_of_rank(std::size_t nodes, const Environment& environment);

}  // namespace ib::softib
