// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths as text; reads no file. claims.h decides whose they are.
//
// This file, like the whole preload library, is linked into every process of a virtual host, also
// into C programs: no exceptions, no libstdc++, and no allocation unless the function of libc that
// it replaces allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

inline constexpr std::size_t kPathSize = 256;  // with the NUL; as ViewIn::path

// An absolute path without "//", ".", ".." and trailing '/'.
struct Path {
  char text[kPathSize];
  std::size_t length;
};

// Sets `out` to `path` as seen from the directory `base` (absolute; ignored if `path` is absolute).
// Returns false if the result does not fit. ".." is taken textually; locate() resolves links of
// ours that stand before one.
bool normalise(const char* base, const char* path, Path& out);

// Returns true for an ending with which the kernel requires a directory.
bool ends_like_directory(const char* path);

// Decimal, with a NUL; snprintf() may not run in signal handlers, and open() may.
void write_number(unsigned value, char* out);

// Inode number; the same for the same path in every process of the host. Never 0, below 2^28.
std::uint32_t inode_of(const char* directory, const char* name);
inline std::uint32_t inode_of(const Path& path) {
  return inode_of(path.text, nullptr);
}

}  // namespace ib::host_abi::preload
