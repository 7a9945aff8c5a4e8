// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The request of `softib run` that gives a node the addresses of the network namespace in which its
// programs run.
#pragma once

#include "drivers/root/fabric_tree.h"

#include <string_view>

namespace ib::drivers {

// Of a network interface, as Linux allows it: it becomes a name of a file and part of texts.
bool is_interface_name(std::string_view name);

void set_addresses(FabricTree& tree, const control::SetAddressesIn& in, io::IrpRef irp);

}  // namespace ib::drivers
