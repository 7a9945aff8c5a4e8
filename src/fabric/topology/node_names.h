// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The virtual hosts that the channel adapters of a topology belong to.
#pragma once

#include "fabric/topology/topology.h"

#include <string>
#include <vector>

namespace ib::fabric {

// The name of the node of each channel adapter, in the order of the elements. Adapters that
// describe themselves as "HOST HCA-1", "HOST mlx5_0" and the like are those of the node HOST; any
// other is the only one of a node, with the name nodeN for the first N that is free.
std::vector<std::string> node_names(const Topology& topology);

// The names of all its nodes, each once, in the order of their first adapters.
std::vector<std::string> nodes_of(const Topology& topology);

}  // namespace ib::fabric
