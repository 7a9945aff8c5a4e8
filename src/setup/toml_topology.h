// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topologies in TOML (docs/cli.md): tables of switches, of HCAs and of cables, as
// fabric/topology_toml.h writes them and people do.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <string>
#include <string_view>

namespace ib::softib {

// Malformed: `reason` begins with line and column, as "7:3: ". Errors of check() for a subnet that
// cannot exist.
Result<fabric::Topology> parse_toml_topology(std::string_view text, std::string& reason);

}  // namespace ib::softib
