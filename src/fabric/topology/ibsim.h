// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The net file of ibsim, the simulator of InfiniBand subnets for management software.
//
// It has the lines of ibnetdiscover's files, names that one may choose, and no need for GUIDs: as
// in ibsim, an adapter has the next number from 0x100000 on (one for the node, one for each port),
// a switch from 0x200000 on, and a router has none, so that it needs a line `rtguid=`. Lines above
// an element change that: `caguid=`, `hcaguids=`, `switchguid=` and `rtguid=` set the next GUID,
// with `+` in place of `=` relative to the one set before; `devid=` is for all elements that
// follow, `width=` and `speed=` (masks, as are the options w= and s= of a port) for their cables.
// `module="NAME"` puts NAME# before the names that follow, `@[1] "ALIAS"` names a port for others,
// and `include "FILE"` reads another file. A cable is as fast as both its ends can be; 4x SDR
// unless they say so, or unless a comment as ibnetdiscover's says better (`# 4xEDR`).
//
// Commands of ibsim's console (`do ...`) are refused: they change a subnet that runs.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ib::fabric {

// Reads the file of an `include`; nothing if it cannot.
using ReadIncluded = std::function<std::optional<std::string>(std::string_view name)>;

// Returns Malformed if the text is none, or what check() returns. `reason` then has the line, the
// column and what was expected there. Without `read_included`, an include is refused.
Result<Topology> parse_ibsim(std::string_view text, const ReadIncluded& read_included,
                             std::string& reason);

// Of a topology that check() finds in order. It has the cables that are up. Speeds above QDR and
// the width 2x, which ibsim has not, are QDR and 4x to it, and come back when softib reads the
// file.
std::string write_ibsim(const Topology& topology);

}  // namespace ib::fabric
