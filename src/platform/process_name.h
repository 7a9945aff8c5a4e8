// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The name under which one process touches the memory of another, and of no third one.
//
// A process id alone is not enough: it means another process in another pid namespace, and after
// the end of the one that was meant. So each process has a nameplate: a number in a page of its own
// at a random address where nothing else is mapped. It goes with the process's memory, at its end
// and when it executes another program; a forked child has none of it. Each access to another
// process's memory passes over the nameplate first, in the same system call.
#pragma once

#include <cstdint>

namespace ib::platform {

struct Nameplate {
  std::uint64_t address = 0;  // 0: it could not be made
  std::uint64_t number = 0;
};

struct ProcessName {
  std::uint32_t pid = 0;  // in the pid namespace of the process that uses the name
  Nameplate plate;
};

// The outcome of a copy within this process, either side of which may be unmapped.
enum class OwnCopy : std::uint32_t {
  Done,
  NoSource,  // not mapped, or not readable
  NoTarget,  // not mapped, or not writable
  NotNow,    // the system lacks resources
};

}  // namespace ib::platform
