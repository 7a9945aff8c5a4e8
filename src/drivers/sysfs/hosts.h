// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses of nodes, for programs that look a host's name up: one file for each name, with an
// address in each line, the first one first.
#pragma once

#include "fabric/model.h"

#include <optional>
#include <string>
#include <string_view>

namespace ib::drivers {

// Returns the text of a file in verbs::control::kHostsFolder; nothing if no node of the fabric has
// that name.
std::optional<std::string> host_file(const fabric::Fabric& fabric, std::string_view path);

}  // namespace ib::drivers
