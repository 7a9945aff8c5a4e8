// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device tree and the driver store as JSON, for `softib devices` and `softib driver list`.
#pragma once

#include "io/device_tree.h"
#include "io/driver_registry.h"

#include <string>

namespace ib::drivers {

std::string tree_json(const io::DeviceTree& tree, const io::DriverRegistry& drivers);

}  // namespace ib::drivers
