// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The topology file of ibnetdiscover (infiniband-diags): what a discovery of a real subnet found.
//
// Read are its default form and those with -f and -g, of which the groups are left out. An element
// is named by its kind and its node GUID. The two ends of a cable each have a line; if they do not
// agree about its width or speed, the lower one counts, and where neither says it, the cable has
// those of TopologyCable{}. A port without a line has no cable. The LIDs are those of the file;
// those that are no unicast LIDs are left out.
//
// Written is the default form: cables that are up, as a discovery finds them. All else comes back
// when it is read, except the GUIDs of ports without a cable that do not follow those of the
// others, and the LIDs of such ports.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <string>
#include <string_view>

namespace ib::fabric {

// Whether a topology file is one of ibnetdiscover and not one of ibsim, which read the same lines:
// the first element is named by its GUID.
bool is_ibnetdiscover(std::string_view text);

// Returns Malformed if the text is none, or what check() returns. `reason` then has the line, the
// column and what was expected there.
Result<Topology> parse_ibnetdiscover(std::string_view text, std::string& reason);

// Of a topology that check() finds in order.
std::string write_ibnetdiscover(const Topology& topology);

}  // namespace ib::fabric
