// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The emulated files, as seen by the calls that take a path or one of our descriptors.
//
// Each function returns Handled if the call is answered; `result` is then the call's result, and
// errno is set if that is -1. Otherwise (softibd unreachable, a descriptor that is not ours any
// more) the caller goes on to the real function.
#pragma once

#include "host_abi/preload/path.h"
#include "host_abi/preload/remote.h"

#include <sys/stat.h>

#include <cstddef>

namespace ib::host_abi::preload {

// Where (directory, path) leads, the two as in openat().
enum class Where {
  Elsewhere,      // the real function, with the arguments as they are
  ElsewhereFull,  // out of one of our directories: the real function, with `at` instead
  Ours,
};
struct Place {
  Where where = Where::Elsewhere;
  bool must_be_directory = false;  // the path ended in '/'
  Path at;                         // ElsewhereFull, Ours
};
Place locate(int directory, const char* path);

// Does softibd answer for this path? One for which the kernel comes first costs a look at it.
bool is_emulated(const Path& path);

// The path of any open directory, real or ours. False: not known, or too long.
bool path_of(int directory, Path& out);

namespace view {

enum class Outcome { NotHandled, Handled };

// What is at the place, after following a final link if `follow`. On success `at.at` is the path
// that was found.
Outcome find(Place& at, bool follow, verbs::control::ViewStatOut& out, int& result);

Outcome open(Place at, int flags, int& result);
Outcome stat(Place at, bool follow, struct ::stat* out, int& result);
Outcome statx(Place at, bool follow, struct ::statx* out, int& result);
Outcome access(Place at, bool follow, int mode, int& result);
Outcome read_link(Place at, char* text, std::size_t size, ssize_t& result);
// `out`: the path with all links replaced.
Outcome real_path(Place at, Path& out, int& result);

// fstat() of a descriptor of ours: makes it look like the file it stands for.
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
