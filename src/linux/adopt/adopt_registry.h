// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside of adopt.cpp: all adopted ranges of the process. A forked child makes its copies private
// with this, before fork() returns (adopt_fork.cpp).
#pragma once

#include "base/result.h"
#include "linux/adopt/adopt_data.h"
#include "linux/adopt/adopt_kept.h"

#include <cstdint>
#include <map>
#include <vector>

namespace ib::os {

struct AdoptedRange {
  std::uint64_t length = 0;
  FileIdentity file;
  int descriptor = -1;            // borrowed: to be compared with `file` before it is used
  std::vector<KeptMapping> kept;  // in the order of addresses
};
using AdoptedRanges = std::map<std::uint64_t, AdoptedRange>;  // by address

// Held during every adoption and return; fork() excludes both and goes first, as std::mutex alone
// would let a thread that moves one range after another starve it. To be made with all signals
// blocked: a handler that forked would wait for itself.
class AdoptLock {
 public:
  AdoptLock();
  AdoptLock(const AdoptLock&) = delete;
  AdoptLock& operator=(const AdoptLock&) = delete;
  ~AdoptLock();
};

// The ranges; under the lock. Empty in a child until it adopts pages of its own; nullptr if there
// is no memory for the table.
AdoptedRanges* adopted_ranges();

// Returns whether this process, or one that it was forked from, has adopted pages. Takes no lock.
bool has_ever_adopted();

// Whether the program has only the calling thread; softib's own do not touch its memory. Workers of
// io_uring count as threads.
bool is_single_threaded();

// Installs the fork handlers; once.
void watch_forks();

}  // namespace ib::os
