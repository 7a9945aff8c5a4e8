// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How much of a process's limits adoption may take. The rest is the program's: without a descriptor
// or a mapping (vm.max_map_count) its own calls fail, down to malloc(), while a region that is not
// adopted works all the same.
#pragma once

#include <cstdint>
#include <optional>

namespace ib::os {

// Returns whether one more range may be adopted. Takes the lock of the ranges.
bool has_room_to_adopt();

// For tests: as if vm.max_map_count were this; nullopt: as it is. The mappings are counted again.
void limit_mappings(std::optional<std::uint64_t> most);

}  // namespace ib::os
