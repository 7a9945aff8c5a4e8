// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pages of `softib topology` and `softib path`, from softibd's JSON.
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>

namespace ib::softib {

// Each switch with what is at its ports; then adapters without a switch.
std::string topology_tree(const Json& topology);
// A line for each cable.
std::string topology_table(const Json& topology);
std::string path_page(const Json& path);

}  // namespace ib::softib
