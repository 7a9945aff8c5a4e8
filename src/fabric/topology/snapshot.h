// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fabric that runs as a topology: its InfiniBand elements, their LIDs, the cables and their
// states.
#pragma once

#include "fabric/model.h"
#include "fabric/topology/topology.h"

namespace ib::fabric {

Topology snapshot_of(const Fabric& fabric);

}  // namespace ib::fabric
