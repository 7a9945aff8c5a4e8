// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of `softib topology`, `softib path` and of cables between switches
// (verbs/control_topology.h).
#pragma once

#include "drivers/root/fabric_tree.h"
#include "io/irp.h"
#include "verbs/control_topology.h"

namespace ib::drivers {

void topology_text(FabricTree& tree, const verbs::control::TopologyIn& in, io::IrpRef irp);
void path_text(FabricTree& tree, const verbs::control::PathIn& in, io::IrpRef irp);
void set_cable(FabricTree& tree, const verbs::control::SetCableIn& in, io::IrpRef irp);

}  // namespace ib::drivers
