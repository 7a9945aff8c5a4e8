// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside of adopt.cpp: one step of moving pages into a file.
#pragma once

#include "base/result.h"
#include "linux/private_range.h"
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
  bool has_minor = false;  // can stop threads at pages that the file of a mapping has (Linux 5.14)
};
// The most that the system and `limit` allow.
FaultFile open_fault_file(platform::AdoptMode limit);

// What a move needs; the files are borrowed.
struct Mover {
  int fault_file = -1;  // -1: no other thread exists
  int page_map = -1;    // /proc/self/pagemap; -1: unknown, all pages are copied
  int target = -1;
  bool has_minor = false;
  std::uint64_t page_size = 4096;
};

// Moves [start, end), which lies in one mapping of private memory, to `offset` of the target and
// maps that in its place. To be called with all signals blocked: a handler that touched the pages
// would wait for itself. Fails without having changed anything.
Status move_step(const Mover& mover, std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                 bool given_back);

}  // namespace ib::os
