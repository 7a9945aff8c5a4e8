// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `--topology`: a preset (fabric/topology/presets.h) or a file: of ibnetdiscover, of ibsim, one of
// ibutils (.topo, subnet.lst), or in TOML (.toml).
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <string>

namespace ib::softib {

// Largest file that is read.
inline constexpr std::size_t kMostTopologyBytes = std::size_t{256} << 20;

// Passive level. Errors as those of the readers; NotFound: neither a preset nor a file. `reason`
// has the file, line and column.
Result<fabric::Topology> read_topology(const std::string& source, std::string& reason);

// A file by its absolute path, as softibd needs it; a preset as it is.
std::string absolute_topology(const std::string& source);
// Whether the topology is the same one as before; of a file, its content.
std::string topology_digest(const std::string& source);

}  // namespace ib::softib
