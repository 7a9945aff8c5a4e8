// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of tools that change the device tree or look at it: `softib hca`, `port`,
// `partition`, `power`, `driver`, `devices`, `ls`. Each pends until it has happened.
#pragma once

#include "drivers/root/fabric_tree.h"

#include <string>
#include <string_view>

namespace ib::drivers {

// Completes with a memory file that holds the text.
void answer_text(Core& core, io::IrpRef irp, std::string_view text);

std::string no_node(std::string_view name);  // in words

void set_port(FabricTree& tree, const control::SetPortIn& in, io::IrpRef irp);
void list_devices(FabricTree& tree, io::IrpRef irp);
void list_names(FabricTree& tree, const control::ViewIn& in, io::IrpRef irp);
void change_hca(FabricTree& tree, const control::ChangeHcaIn& in, io::IrpRef irp);
void change_partition(FabricTree& tree, const control::ChangePartitionIn& in, io::IrpRef irp);
void set_power(FabricTree& tree, const control::SetPowerIn& in, io::IrpRef irp);
void change_driver(FabricTree& tree, const control::ChangeDriverIn& in, io::IrpRef irp);

}  // namespace ib::drivers
