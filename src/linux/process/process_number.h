// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which process this is, for what a forked child must leave alone.
#pragma once

#include <cstdint>

namespace ib::os {

// Differs from the numbers of all processes that this one descends from, whose memory it has a copy
// of. The process id does not: in a PID namespace of its own a child may have its parent's. A child
// of vfork(), which works in its parent's memory, has another number than that too.
std::uint64_t process_number();

}  // namespace ib::os
