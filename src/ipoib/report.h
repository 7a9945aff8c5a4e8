// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a node's interfaces as JSON, for `softib ipoib` (docs/status_json.md lists the
// keys).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

class Adapter;

std::string report_of(const std::vector<std::unique_ptr<Adapter>>& adapters);

}  // namespace ib::ipoib::driver
