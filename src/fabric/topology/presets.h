// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Topologies by name: `star:8`, `fat-tree:hcas=648,ports=36`, `torus:4x4x4,hosts=2`.
//
// The host channel adapters come first, node0 and on, each with one port and with the GUIDs that
// the first HCA of this node has in a fabric without a topology: programs see no difference. Then
// come the switches. The same text makes the same topology on every machine.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ib::fabric {

// The presets and their arguments, for a help text: lines of at most 78 columns.
extern const char* const kPresetHelp;

// Whether the text begins with the name of a preset: it is no name of a file then.
bool is_preset(std::string_view text);

// Returns NotFound if there is no such preset, InvalidParameter or LimitExceeded if its arguments
// make no subnet. `reason` is then a sentence that says what was wrong and what would be right.
Result<Topology> preset_topology(std::string_view text, std::string& reason);

// Of switch `index`: no HCA has it.
std::uint64_t switch_guid(std::size_t index);

}  // namespace ib::fabric
