// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The request of `softib run` that gives a node the addresses of the network namespace in which its
// programs run.
#pragma once

#include "drivers/root/fabric_tree.h"

namespace ib::drivers {

void set_addresses(FabricTree& tree, const control::SetAddressesIn& in, io::IrpRef irp);

}  // namespace ib::drivers
