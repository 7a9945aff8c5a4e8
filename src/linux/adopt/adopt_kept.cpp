// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt_kept.h"

#include "linux/adopt/adopt_syscall.h"

#include <sys/mman.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace ib::os {
namespace {

constexpr std::uint64_t kHugePage = 2u << 20;

void unmap(std::uint64_t start, std::uint64_t end) {
  if (start < end) (void)raw_syscall(SYS_munmap, to_long(start), to_long(end - start));
}

// A place for `length` bytes that lies as `like` does within huge pages, in address space that is
// reserved for it; 0: none.
std::uint64_t reserve_like(std::uint64_t length, std::uint64_t like) {
  const std::uint64_t space = length + kHugePage;
  const long got = raw_syscall(SYS_mmap, 0, to_long(space), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_error(got)) return 0;
  const auto start = static_cast<std::uint64_t>(got);
  const std::uint64_t place = start + (like - start) % kHugePage;
  unmap(start, place);
  unmap(place + length, start + space);
  return place;
}

}  // namespace

std::uint64_t put_aside(std::uint64_t start, std::uint64_t page_size) {
  const long at = raw_syscall(SYS_mremap, to_long(start), to_long(page_size), to_long(page_size),
                              MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
  return is_error(at) ? 0 : static_cast<std::uint64_t>(at);
}

void empty_kept(std::uint64_t at, std::uint64_t page_size) {
  (void)raw_syscall(SYS_madvise, to_long(at), to_long(page_size), MADV_DONTNEED);
}

std::uint64_t grow_kept(std::uint64_t at, std::uint64_t page_size, std::uint64_t length,
                        std::uint64_t like) {
  const std::uint64_t place = length < kHugePage ? 0 : reserve_like(length, like);
  const int flags = place == 0 ? MREMAP_MAYMOVE : MREMAP_MAYMOVE | MREMAP_FIXED;
  const long grown = raw_syscall(SYS_mremap, to_long(at), to_long(page_size), to_long(length),
                                 flags, to_long(place));
  if (!is_error(grown)) return static_cast<std::uint64_t>(grown);
  // The reserved space stays, if it is there still: others may have got it.
  drop_kept(at, page_size);
  return 0;
}

void drop_kept(std::uint64_t at, std::uint64_t page_size) {
  if (at != 0) unmap(at, at + page_size);
}

void drop_kept(const std::vector<KeptMapping>& kept, std::uint64_t page_size) {
  for (const KeptMapping& mapping : kept) drop_kept(mapping.at, page_size);
}

}  // namespace ib::os
