// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt.h"
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/adopt_registry.h"
#include "linux/client/client_signals.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

namespace ib::os {
namespace {

// A write of the same value makes the kernel copy the page. Compare-and-swap, as no compiler turns
// that into a read, and as another thread may be writing the same byte.
void touch_pages(std::uint64_t start, std::uint64_t length, std::uint64_t page_size) {
  for (std::uint64_t at = start; at < start + length; at += page_size) {
    auto* byte = reinterpret_cast<unsigned char*>(at);  // NOLINT(performance-no-int-to-ptr)
    unsigned char value = __atomic_load_n(byte, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(byte, &value, value, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {}
  }
}

bool map_private(int file, std::uint64_t start, std::uint64_t length, std::uint64_t offset) {
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED;
  const auto map = [&](int flags) {
    return !is_error(raw_syscall(SYS_mmap, to_long(start), to_long(length), PROT_READ | PROT_WRITE,
                                 flags, file, to_long(offset)));
  };
  // Strict overcommit may refuse memory that the program already had.
  return map(kFlags) || map(kFlags | MAP_NORESERVE);
}

void return_step(int file, const Mapping& m, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t length = end - start;
  const std::uint64_t offset = m.offset + (start - m.start);
  if (!map_private(file, start, length, offset)) return;
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for_data(file, offset, length, [&](std::uint64_t data, std::uint64_t size) {
    const std::uint64_t at = start + (data - offset);
    const long done = raw_syscall(SYS_madvise, to_long(at), to_long(size), MADV_POPULATE_WRITE);
    if (done != 0) touch_pages(at, size, page_size);  // before Linux 5.14
  });
  if (!m.readable || !m.writable) {
    const int protection = (m.readable ? PROT_READ : 0) | (m.writable ? PROT_WRITE : 0);
    (void)raw_syscall(SYS_mprotect, to_long(start), to_long(length), protection);
  }
  // The file's pages have no user left: the memory is freed, and MADV_DONTNEED finds zeros.
  (void)raw_syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    to_long(offset), to_long(length));
}

}  // namespace

void give_back_pages(const platform::AdoptedPages& pages) {
  const CancelGuard no_cancel;
  const SignalGuard no_signals;
  const AdoptLock lock;
  AdoptedRanges* ranges = adopted_ranges();
  if (ranges == nullptr) return;
  const auto found = ranges->find(pages.address);
  const FileIdentity file = identity_of(pages.file.get());
  // In a forked child: the pages are private already, and the file is the parent's.
  if (found == ranges->end() || found->second.file != file || file.inode == 0) return;
  ranges->erase(found);

  MapsReader maps;
  const std::uint64_t end = pages.address + pages.length;
  Mapping m;
  for (std::uint64_t at = pages.address; at < end && maps.find(at, m) && m.start < end;
       at = m.end) {
    if (!is_adopted_mapping(m, file, pages.address)) continue;
    // mremap() may have grown the mapping beyond the end of the range.
    for (std::uint64_t from = m.start; from < m.end;) {
      const std::uint64_t next = step_end(from, m.end);
      return_step(pages.file.get(), m, from, next);
      from = next;
    }
  }
}

}  // namespace ib::os
