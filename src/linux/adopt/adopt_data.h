// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside of adopt.cpp: the parts of the memfd that hold data, and its own mappings.
#pragma once

#include "linux/adopt/adopt_syscall.h"
#include "linux/adopt/private_range.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ib::os {

// Calls `run(offset, length)` for the parts of [offset, offset + length) of the file that hold
// data.
template <class Run>
void for_data(int file, std::uint64_t offset, std::uint64_t length, Run run) {
  constexpr long kSeekData = 3;
  constexpr long kSeekHole = 4;
  const std::uint64_t end = offset + length;
  while (offset < end) {
    const long data = raw_syscall(SYS_lseek, file, to_long(offset), kSeekData);
    if (data < 0 || static_cast<std::uint64_t>(data) >= end) return;
    const long hole = raw_syscall(SYS_lseek, file, data, kSeekHole);
    const std::uint64_t stop =
        hole < 0 || static_cast<std::uint64_t>(hole) > end ? end : static_cast<std::uint64_t>(hole);
    run(static_cast<std::uint64_t>(data), stop - static_cast<std::uint64_t>(data));
    offset = stop;
  }
}

// Names a file: device and inode as in /proc/self/maps. inode 0: none.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  bool operator==(const FileIdentity&) const = default;
};

inline FileIdentity identity_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return {};
  return {status.st_ino, major(status.st_dev), minor(status.st_dev)};
}

// Whether `m` is still the mapping that adoption made: the program may have unmapped the memory and
// another mapping may be there.
inline bool is_adopted_mapping(const Mapping& m, const FileIdentity& file, std::uint64_t address) {
  return m.shared && FileIdentity{m.inode, m.device_major, m.device_minor} == file &&
         m.start - address == m.offset;  // modulo 2^64 if it starts below: no offset equals that
}

}  // namespace ib::os
