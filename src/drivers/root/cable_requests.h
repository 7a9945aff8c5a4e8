// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of `softib cable` and `softib switch`, which change the subnet while it is in use
// (verbs/control_topology.h).
#pragma once

#include "drivers/root/fabric_tree.h"
#include "io/irp.h"
#include "verbs/control_topology.h"

namespace ib::drivers {

void change_cable(FabricTree& tree, const verbs::control::ChangeCableIn& in, io::IrpRef irp);
void cable_errors(FabricTree& tree, const verbs::control::CableErrorsIn& in, io::IrpRef irp);
void change_switch(FabricTree& tree, const verbs::control::ChangeSwitchIn& in, io::IrpRef irp);

}  // namespace ib::drivers
