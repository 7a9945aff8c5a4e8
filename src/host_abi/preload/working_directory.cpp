// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/working_directory.h"

#include "host_abi/preload/claims.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/versioned_words.h"

#include <cstdint>
#include <cstring>

namespace ib::host_abi::preload::working_directory {
namespace {

// The path and, behind it, its length; 0: a real directory.
constexpr std::size_t kLength = kPathSize / sizeof(std::uint64_t);
static_assert(kPathSize % sizeof(std::uint64_t) == 0);
constinit VersionedWords<kLength + 1> current;

void store(const Path* path) {
  decltype(current)::Values values{};
  if (path != nullptr) {
    std::memcpy(values.data(), path->text, kPathSize);
    values[kLength] = path->length;
  }
  current.store(values);
}

// Enters the nearest real directory above: /sys/class, /sys/devices, /dev. If that is absent too (a
// container without /sys), the one above it.
bool enter_real_parent(const Path& path) {
  Path above = path;
  while (preload::is_ours(above) || sys::change_directory(above.text) != 0) {
    if (above.length <= 1) return false;
    Path next;
    if (!normalise(above.text, "..", next)) return false;
    above = next;
  }
  return true;
}

// Returns whether the kernel's working directory is the one that enter() has chosen for `path`.
bool stands_above(const Path& path) {
  Path real;
  const ssize_t got = sys::current_directory(real.text, sizeof real.text);
  if (got <= 1 || real.text[0] != '/') return false;
  real.length = static_cast<std::size_t>(got) - 1;
  if (preload::is_ours(real) || std::strncmp(path.text, real.text, real.length) != 0) return false;
  Path above = path;
  while (preload::is_ours(above)) {
    Path next;
    if (!normalise(above.text, "..", next)) return false;
    above = next;
  }
  return std::strcmp(above.text, real.text) == 0;
}

}  // namespace

bool is_ours() {
  return current.peek(kLength) != 0;
}

bool get(Path& out) {
  const auto values = current.load();
  out.length = values[kLength];
  std::memcpy(out.text, values.data(), kPathSize);
  return out.length != 0;
}

bool enter(const Path& path) {
  fds::watch_forks();
  if (!enter_real_parent(path)) return false;
  if (!fds::is_borrowed_memory()) store(&path);
  return true;
}

void leave() {
  if (is_ours() && !fds::is_borrowed_memory()) store(nullptr);
}

void inherit(const Path& pwd) {
  const sys::KeepErrno keep;
  if (!preload::is_ours(pwd) || !stands_above(pwd)) return;
  fds::watch_forks();
  store(&pwd);
}

}  // namespace ib::host_abi::preload::working_directory
