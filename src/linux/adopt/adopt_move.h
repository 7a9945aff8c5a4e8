// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside of adopt.cpp: one step of moving pages into a file.
#pragma once

#include "base/result.h"
#include "linux/adopt/private_range.h"
#include "platform/client_host.h"

#include <cstdint>

namespace ib::os {

inline constexpr std::uint64_t kAdoptStep = 4u << 20;

// The end of the step that starts at `at`: steps end at multiples of their size, so that huge pages
// stay whole.
constexpr std::uint64_t step_end(std::uint64_t at, std::uint64_t end) {
  const std::uint64_t next = (at / kAdoptStep + 1) * kAdoptStep;
  return next < end ? next : end;
}

struct FaultFile {
  platform::NativeHandle file;  // a userfaultfd; none: not permitted
  platform::AdoptMode mode = platform::AdoptMode::None;
  bool has_minor =
      false;  // can stop threads at pages that are in the file of a mapping (Linux 5.14)
  bool has_move = false;  // UFFDIO_MOVE (Linux 6.8)
  // Can stop threads that write to pages of a shared mapping (Linux 5.19).
  bool has_write_protection = false;
};
// Returns the most that the kernel and `limit` allow.
FaultFile open_fault_file(platform::AdoptMode limit);
// The limit that tests have set.
platform::AdoptMode adopt_mode_limit();

// Copies [memory, memory + length) to `offset` of the file (`number`: SYS_pwrite64), or the other
// way (SYS_pread64). A mapping of the file would fault page by page, and clear the pages first.
Status copy_run(long number, int file, std::uint64_t memory, std::uint64_t length,
                std::uint64_t offset);

// Stops threads that write to [start, start + length), a shared mapping of a memfd; they read on.
// The range is registered with the file then. Returns false, without a change, if the kernel
// cannot.
bool stop_writers(const FaultFile& faults, std::uint64_t start, std::uint64_t length);
// Undoes that.
void let_writers_go(const FaultFile& faults, std::uint64_t start, std::uint64_t length);
// Threads that wait for the range look again at what is mapped there.
void wake_threads(int fault_file, std::uint64_t start, std::uint64_t length);

// The means of a move; the files are borrowed.
struct Mover {
  int fault_file = -1;  // -1: no other thread exists
  int page_map = -1;    // /proc/self/pagemap; -1: unknown, all pages count as touched
  int target = -1;
  bool has_minor = false;
  bool has_move = false;  // UFFDIO_MOVE (Linux 6.8): the kernel refuses pinned pages
  // Touched pages may move although the kernel does not report whether they are pinned: the caller
  // has made sure that nothing can pin them.
  bool trusts_pins = false;
  std::uint64_t page_size = 4096;
};

// Returns the number of bytes of [start, end) that have been touched. NotSupported: there are guard
// pages.
Result<std::uint64_t> touched_bytes(const Mover& mover, std::uint64_t start, std::uint64_t end);

// Part of one mapping of private memory.
struct Step {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the target
  bool given_back = false;   // the mapping is of an emptied file (adopt.h)
  bool keeps = false;        // the mapping of its first page is put aside (adopt_kept.h)
};

// Returns whether the mapping of [start, end), pages of one mapping, is worth to be kept. One that
// has never had a page gets one: the kernel decides only then from what it descends.
bool can_keep(const Mover& mover, std::uint64_t start, std::uint64_t end);

// Moves the pages of a step to the target and maps that in their place. To be called with all
// signals blocked: a handler that touched the pages would wait for itself. Fails without a change;
// DeviceBusy: a page is, or may be, pinned for I/O by the kernel. `kept`: where the mapping of the
// first page is; 0: not kept.
Status move_step(const Mover& mover, const Step& step, std::uint64_t& kept);

}  // namespace ib::os
