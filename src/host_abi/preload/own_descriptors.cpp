// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/own_descriptors.h"

#include "host_abi/preload/system_calls.h"
#include "linux/descriptor_table.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace ib::host_abi::preload::own {
namespace {

constinit os::DescriptorTable table;

// Those of another process do not count, as after a fork.
std::uint64_t salt() {
  constexpr std::uint64_t kSpread = 0xd6e8feb86659fd93;
  return static_cast<std::uint64_t>(sys::process_id()) * kSpread;
}
constexpr std::uint64_t kAnyProcess = 0;

// Returns the first one from `first` to `last`, or -1.
int next_protected(unsigned first, unsigned last) {
  const int highest = table.highest();
  if (highest < 0) return -1;
  const unsigned end = std::min(last, static_cast<unsigned>(highest));
  for (unsigned fd = first; fd <= end; ++fd) {
    if (is_protected(static_cast<int>(fd))) return static_cast<int>(fd);
  }
  return -1;
}

// Kernels before 5.9 close one at a time.
int close_all(unsigned first, unsigned last, int flags) {
  const int result = sys::close_range(first, last, flags);
  if (result == 0 || errno != ENOSYS || flags != 0) return result;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  const sys::KeepErrno keep;
  for (unsigned fd = first; fd <= last && fd < limit.rlim_max; ++fd) {
    sys::close(static_cast<int>(fd));
  }
  return 0;
}

}  // namespace

void protect(int fd) {
  table.add(fd, salt());
}

void protect_in_children(int fd) {
  table.add(fd, kAnyProcess);
}

void unprotect(int fd) {
  table.remove(fd);
}

bool is_protected(int fd) {
  return table.knows(fd) && (table.has(fd, salt()) || table.has(fd, kAnyProcess));
}

int close_others(unsigned first, unsigned last, int flags) {
  unsigned from = first;
  for (int fd = next_protected(from, last); fd >= 0; fd = next_protected(from, last)) {
    const auto number = static_cast<unsigned>(fd);
    if (from < number && close_all(from, number - 1, flags) != 0) return -1;
    from = number + 1;
    if (number == last) return 0;
  }
  return close_all(from, last, flags);
}

}  // namespace ib::host_abi::preload::own
