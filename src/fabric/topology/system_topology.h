// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The topology file of ibutils (ibdm-topo-file(1)): products and the cables between their
// connectors, which IBNL files describe.
//
// `MTS2400 S-1` begins a product, with `CFG: leaf1=R` to leave a board out and `leaf1=4x` for
// another kind of it; `P1 -4x-5G-> MT23108 H-1 P2` is a cable. A product that only cables mention
// needs no lines of its own. It is read only. The file has no GUIDs: adapters get those of nodes,
// in their order, and switches those of switches of presets. A part of a product is described as
// S-1/leaf1/U1, an adapter by the name of the product. A cable is 4x SDR unless it or the
// connectors say so.
#pragma once

#include "base/result.h"
#include "fabric/topology/system_library.h"
#include "fabric/topology/topology.h"

#include <string>
#include <string_view>

namespace ib::fabric {

// Returns Malformed if the text is none or names a product that the library has not, or what
// check() returns. `reason` then has the line, the column and what was expected there.
Result<Topology> parse_system_topology(std::string_view text, const SystemLibrary& library,
                                       std::string& reason);

}  // namespace ib::fabric
