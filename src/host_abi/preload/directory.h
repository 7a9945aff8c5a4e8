// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Our own DIR: the names of an emulated directory, or a real directory (is_parent()) followed by
// the names that we add to it.
//
// Programs hold it as DIR*, so each call must distinguish it from libc's. libc's begins with its
// file descriptor, an int that is never negative; ours begins with a negative number.
#pragma once

#include "host_abi/preload/path.h"

#include <dirent.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// Returns false with EOVERFLOW if `to` cannot hold the inode.
bool narrow_entry(const ::dirent64& from, ::dirent& to);

struct Directory {
  static constexpr std::int32_t kMark = -0x5f1b0000;

  std::int32_t mark = kMark;
  int fd = -1;          // names from softibd only: the memfd; else that of `real`
  DIR* real = nullptr;  // read before `names`
  Path path{};
  char* names = nullptr;  // NUL terminated, one per line
  std::size_t position = 0;
  bool in_names = false;  // `real` is read to its end, or null
  ::dirent64 entry{};
  ::dirent narrow{};  // the last entry for readdir(), whose layout is smaller on 32-bit machines

  static Directory* from(DIR* stream) {
    std::int32_t first = *reinterpret_cast<std::int32_t*>(stream);
    return first == kMark ? reinterpret_cast<Directory*>(stream) : nullptr;
  }
  DIR* stream() { return reinterpret_cast<DIR*>(this); }

  // Takes over `fd`, an open directory of ours. Returns nullptr with errno if there is no memory.
  static Directory* open_ours(int fd);
  // Takes over `real`, for which is_parent() is true. Returns nullptr and leaves it to the caller
  // with errno 0 if softibd is unreachable (use `real` as it is), or EMFILE or ENOMEM.
  static Directory* open_merged(DIR* real, const Path& path);

  // Returns nullptr at the end; errno is then unchanged, as readdir() promises.
  ::dirent64* read();
  // The same for readdir(). An entry that its layout cannot hold: EOVERFLOW.
  ::dirent* read_narrow();
  // A place after the end of the real directory is negative.
  long tell() const;
  void seek(long where);
  void rewind() { seek(0); }
  int close();

 private:
  ::dirent64* read_real();
  ::dirent64* read_name();
};

}  // namespace ib::host_abi::preload
