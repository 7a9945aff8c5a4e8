// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Forwarding by the fewest hops.
#pragma once

#include "fabric/graph.h"

namespace ib::fabric {

// Fills the linear table of a switch: to each LID of its subnet by one of the ports with the fewest
// hops, which share the LIDs in turn; LIDs that no cable leads to have none. Time grows with the
// number of cables between switches.
void fill_by_fewest_hops(Graph& graph, const Element& element);

}  // namespace ib::fabric
