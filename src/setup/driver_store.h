// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The driver store: a folder with a manifest (NAME.json) for each driver module.
//   {"name": "ping", "kind": "function", "hardware_ids": ["IBA\\Ping"], "depends": ["ib_bus"],
//    "description": "...", "module": "libping.so"}
// `kind` is "function" or "filter"; `depends` and `description` may be absent; `module` is relative
// to the folder.
#pragma once

#include "base/result.h"
#include "io/driver_registry.h"

#include <string>
#include <vector>

namespace ib::softib {

// Passive level. Defective manifests are left out, with a line in `complaints`. NotFound, IoError:
// the folder itself.
Result<std::vector<io::DriverInfo>> read_driver_store(const std::string& folder,
                                                      std::vector<std::string>& complaints,
                                                      std::string& reason);

// One manifest. Malformed: see `reason`.
Result<io::DriverInfo> parse_manifest(const std::string& text, const std::string& folder,
                                      std::string& reason);

}  // namespace ib::softib
