// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the path of a call leads: locate(), before view.cpp looks at the file.
#include "host_abi/preload/claims.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"
#include "host_abi/preload/working_directory.h"

#include <cstring>

namespace ib::host_abi::preload {
namespace {

// The next ".." of a path, or its end.
const char* next_parent(const char* path) {
  while (*path != '\0') {
    const std::size_t length = std::strcspn(path, "/");
    if (length == 2 && path[0] == '.' && path[1] == '.') break;
    path += length;
    path += std::strspn(path, "/");
  }
  return path;
}

// As normalise(), but ".." behind a link of ours leads to the directory above its target, as in the
// kernel. `passes_ours`: a directory of ours stands before a "..".
bool walk(const char* base, const char* path, Path& out, bool& passes_ours) {
  if (!normalise(base, path[0] == '/' ? "/" : "", out)) return false;
  for (;;) {
    const char* parent = next_parent(path);
    char part[kPathSize];
    const auto length = static_cast<std::size_t>(parent - path);
    if (length >= sizeof part) return false;
    std::memcpy(part, path, length);
    part[length] = '\0';
    const Path before = out;
    if (!normalise(before.text, part + std::strspn(part, "/"), out)) return false;
    if (*parent == '\0') return true;
    if (is_emulated(out)) {
      passes_ours = true;
      Place here;
      here.at = out;
      int result = 0;
      if (view::real_path(here, out, result) == view::Outcome::Handled && result != 0) return true;
    }
    const Path here = out;
    if (!normalise(here.text, "..", out)) return false;
    path = parent + 2;
  }
}

bool is_absent(const char* path) {
  struct ::statx kernels;
  return sys::stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, kernels) != 0 && errno == ENOENT;
}

// Of another TAP the kernel's file is the one there is.
bool is_of_softibds_tap(const Path& path) {
  const sys::KeepErrno keep;
  Path interface;
  Path mark;
  if (!normalise(path.text, "..", interface)) return false;
  if (!normalise(interface.text, "tun_flags", mark)) return false;
  if (!is_absent(interface.text) && is_absent(mark.text)) return false;
  verbs::control::ViewStatOut file;
  return remote::stat(path, file) == remote::Reply::Ok;
}

}  // namespace

bool is_emulated(const Path& path) {
  switch (claim_on(path)) {
    case Claim::None: return false;
    case Claim::Ours: return true;
    case Claim::IfAbsent: break;
    case Claim::OfTap: return is_of_softibds_tap(path);
  }
  const sys::KeepErrno keep;
  return is_absent(path.text);
}

bool path_of(int directory, Path& out) {
  if (directory == AT_FDCWD && working_directory::get(out)) return true;
  if (directory == AT_FDCWD) {
    const ssize_t got = sys::current_directory(out.text, sizeof out.text);
    if (got <= 1 || out.text[0] != '/') return false;
    out.length = static_cast<std::size_t>(got) - 1;
    return true;
  }
  if (fds::find(directory).kind == fds::Kind::Directory) {
    view::Listing listing;
    if (view::read_listing(directory, listing)) {
      out = listing.path;
      return true;
    }
  }
  if (directory < 0) return false;
  char link[32] = "/proc/self/fd/";
  write_number(static_cast<unsigned>(directory), link + std::strlen(link));
  const ssize_t got = sys::read_link(link, out.text, sizeof out.text);
  if (got <= 0 || static_cast<std::size_t>(got) >= sizeof out.text) return false;
  out.length = static_cast<std::size_t>(got);
  out.text[out.length] = '\0';
  return out.text[0] == '/';
}

Place locate(int directory, const char* path) {
  Place place;
  if (path == nullptr || path[0] == '\0') return place;
  const bool below_ours =
      path[0] != '/' && (directory == AT_FDCWD ? working_directory::is_ours()
                                               : fds::find(directory).kind == fds::Kind::Directory);
  if (!below_ours && !may_be_claimed(path)) return place;

  const sys::KeepErrno keep;
  Path base{"/", 1};
  if (path[0] != '/' && !path_of(directory, base)) return place;
  bool passes_ours = false;
  if (!walk(base.text, path, place.at, passes_ours)) return place;
  place.must_be_directory = ends_like_directory(path);
  if (is_emulated(place.at)) {
    place.where = Where::Ours;
  } else if (passes_ours || (below_ours && claim_on(base) != Claim::None)) {
    place.where = Where::ElsewhereFull;
  }
  return place;
}

}  // namespace ib::host_abi::preload
