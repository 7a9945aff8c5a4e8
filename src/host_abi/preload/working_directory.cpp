// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/working_directory.h"

#include "host_abi/preload/claims.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/system_calls.h"

#include <atomic>
#include <cstring>

namespace ib::host_abi::preload::working_directory {
namespace {

// Odd: a change is under way. The path is made of atomic words, since readers may read meanwhile.
std::atomic<unsigned> version{0};
std::atomic<unsigned> length{0};  // 0: a real directory
constexpr std::size_t kWords = kPathSize / sizeof(std::uint64_t);
static_assert(kPathSize % sizeof(std::uint64_t) == 0);
std::atomic<std::uint64_t> words[kWords];

void store(const Path* path) {
  unsigned before = version.load(std::memory_order_relaxed) & ~1u;
  while (!version.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) {
    before &= ~1u;  // another thread changes it: one of the two is the last
  }
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; path != nullptr && i < kWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, path->text + i * sizeof word, sizeof word);
    words[i].store(word, std::memory_order_relaxed);
  }
  length.store(path == nullptr ? 0 : static_cast<unsigned>(path->length),
               std::memory_order_relaxed);
  version.store(before + 2, std::memory_order_release);
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
  return length.load(std::memory_order_acquire) != 0;
}

bool get(Path& out) {
  for (;;) {
    const unsigned before = version.load(std::memory_order_acquire);
    if ((before & 1u) != 0) continue;
    out.length = length.load(std::memory_order_relaxed);
    if (out.length == 0) return false;
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t word = words[i].load(std::memory_order_relaxed);
      std::memcpy(out.text + i * sizeof word, &word, sizeof word);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) == before) return true;
  }
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
