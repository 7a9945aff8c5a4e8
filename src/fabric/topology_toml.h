// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A topology in TOML, with all that it has. setup/toml_topology.h reads it.
#pragma once

#include "fabric/topology/topology.h"

#include <string>

namespace ib::fabric {

// Bytes of descriptions that are no UTF-8 become "?", since TOML has no others.
std::string write_toml_topology(const Topology& topology);

}  // namespace ib::fabric
