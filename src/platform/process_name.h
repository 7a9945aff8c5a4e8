// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How one process names another whose memory it touches, so that it can be no other.
//
// A process id alone is not enough: it means another process in another pid namespace, and after
// the end of the one that was meant. So each process has a nameplate: a number in a page of its own
// at a random address where nothing else is mapped. It goes with the process's memory, at its end
// and when it executes another program; a forked child has none of it. Whoever touches another
// process's memory passes over the nameplate in the same system call, first.
#pragma once

#include <cstdint>

namespace ib::platform {

struct Nameplate {
  std::uint64_t address = 0;  // 0: none could be put up
  std::uint64_t number = 0;
};

struct ProcessName {
  std::uint32_t pid = 0;  // as the one who names it sees it
  Nameplate plate;
};

// What became of a copy within this process, of which any side may not be there.
enum class OwnCopy : std::uint32_t {
  Done,
  NoSource,  // not mapped, or not readable
  NoTarget,  // not mapped, or not writable
  NotNow,    // the system has no means left
};

}  // namespace ib::platform
