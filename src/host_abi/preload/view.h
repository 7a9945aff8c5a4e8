// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The emulated files, as seen by the calls that take a path or one of our descriptors.
//
// Each function returns Handled if the call is answered; `result` is then the call's result, and
// errno is set if that is -1. Otherwise (softibd is unreachable, the descriptor is not ours now)
// the caller calls the real function.
#pragma once

#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/path.h"
#include "host_abi/preload/remote.h"

#include <sys/stat.h>

#include <cstddef>

namespace ib::host_abi::preload {

// The target of (directory, path), the two as in openat().
enum class Where {
  Elsewhere,      // call the real function with the arguments as they are
  ElsewhereFull,  // leads out of one of our directories: call the real function with `at`
  Ours,
};
struct Place {
  Where where = Where::Elsewhere;
  bool must_be_directory = false;  // the path ended in '/'
  Path at;                         // ElsewhereFull, Ours
};
Place locate(int directory, const char* path);

// Returns whether softibd answers for this path. A path for which the kernel comes first costs a
// stat().
bool is_emulated(const Path& path);

// The path of any open directory, real or ours. Returns false if it is not found or too long.
bool path_of(int directory, Path& out);

namespace view {

enum class Outcome { NotHandled, Handled };

// Describes the file at the place, after following a final link if `follow`. On success `at.at` is
// the path of that file.
Outcome find(Place& at, bool follow, verbs::control::ViewStatOut& out, int& result);

Outcome open(Place at, int flags, int& result);
Outcome stat(Place at, bool follow, struct ::stat* out, int& result);
Outcome statx(Place at, bool follow, struct ::statx* out, int& result);
Outcome access(Place at, bool follow, int mode, int& result);
Outcome read_link(Place at, char* text, std::size_t size, ssize_t& result);
// `out`: the path with all links replaced.
Outcome real_path(Place at, Path& out, int& result);

// The errno (EISDIR) with which every call that reads a descriptor fails, or 0: a directory of ours
// cannot be read. `entry` is what fds::find() says.
int reading_error(int fd, const fds::Entry& entry);

// fstat() of a descriptor of ours: describes the emulated file.
Outcome stat_fd(int fd, struct ::stat* out, int& result);
Outcome statx_fd(int fd, struct ::statx* out, int& result);

// The content of an open directory of ours: its path, and where its names begin.
struct Listing {
  Path path;
  std::size_t names_offset;
};
bool read_listing(int fd, Listing& out);

}  // namespace view
}  // namespace ib::host_abi::preload
