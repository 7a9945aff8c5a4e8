// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt_advice.h"

#include "linux/adopt/adopt_registry.h"
#include "linux/adopt/adopt_syscall.h"
#include "linux/adopt/private_range.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace ib::os {
namespace {

constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18

bool discards(int advice) {
  return advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked;
}

bool is_adopted(const Mapping& m) {
  return m.shared && m.name_view().starts_with(kPagesPath);
}

// The advice that discards private anonymous memory, translated for this mapping.
int translated(const Mapping& m, int advice) {
  if (is_adopted(m)) return MADV_REMOVE;
  return m.given_back() && advice == MADV_FREE ? MADV_DONTNEED : advice;
}

bool has_own_pages(MapsReader& maps, std::uint64_t start, std::uint64_t end) {
  Mapping m;
  for (std::uint64_t at = start; at < end && maps.find(at, m) && m.start < end; at = m.end) {
    if (is_adopted(m) || m.given_back()) return true;
  }
  return false;
}

}  // namespace

std::optional<int> advise_adopted(std::uint64_t address, std::size_t length, int advice) {
  if (!discards(advice) || !has_ever_adopted()) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (address % page != 0 || address + length < address) return std::nullopt;
  const std::uint64_t end = (address + length + page - 1) / page * page;
  MapsReader maps;
  if (!has_own_pages(maps, address, end)) return std::nullopt;
  int result = 0;
  Mapping m;
  std::uint64_t at = address;
  for (; at < end && maps.find(at, m) && m.start < end; at = m.end) {
    if (m.start > at) result = -ENOMEM;  // as in the kernel: a hole is reported at the end
    const std::uint64_t from = std::max(at, m.start);
    const long bytes = to_long(std::min(m.end, end) - from);
    const long done = raw_syscall(SYS_madvise, to_long(from), bytes, translated(m, advice));
    if (done != 0) return static_cast<int>(done);
  }
  return at < end ? -ENOMEM : result;
}

}  // namespace ib::os
