// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet.lst of ibdiagnet (ibutils): a line for each end of each cable.
//
// `{ CA Ports:02 SystemGUID:... NodeGUID:... PortGUID:... VenID:... DevID:... Rev:... {description}
// LID:0001 PN:01 } { SW ... } PHY=4x LOG=ACT SPD=2.5`, all numbers hexadecimal. It is read only. A
// cable may have one line or two. An element whose ports all have the same GUID is a switch,
// whatever the line says: some programs write CA there.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <string>
#include <string_view>

namespace ib::fabric {

// Whether the first line that is no comment begins with a brace.
bool is_subnet_list(std::string_view text);

// Returns Malformed if the text is none, or what check() returns. `reason` then has the line, the
// column and what was expected there.
Result<Topology> parse_subnet_list(std::string_view text, std::string& reason);

}  // namespace ib::fabric
