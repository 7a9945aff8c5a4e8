// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt.h"
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/adopt_registry.h"
#include "linux/client/client_signals.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <atomic>

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

constinit std::atomic<bool> write_protection_forbidden{false};

// The address, or an error.
long map_private(std::uint64_t start, std::uint64_t length, int flags, int file,
                 std::uint64_t offset) {
  const auto map = [&](int more) {
    return raw_syscall(SYS_mmap, to_long(start), to_long(length), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | flags | more, file, to_long(offset));
  };
  const long at = map(0);
  // Strict overcommit may refuse memory that the program already had.
  return is_error(at) ? map(MAP_NORESERVE) : at;
}

int protection_of(const Mapping& m) {
  return (m.readable ? PROT_READ : 0) | (m.writable ? PROT_WRITE : 0);
}

// From stop_writers() on, until the threads are awake, only this frame may be written to.
bool replace(const FaultFile& faults, int file, const Mapping& m, std::uint64_t start,
             std::uint64_t length, std::uint64_t copy) {
  if (!stop_writers(faults, start, length)) return false;
  const std::uint64_t offset = m.offset + (start - m.start);
  bool good = true;
  for_data(file, offset, length, [&](std::uint64_t data, std::uint64_t size) {
    good = good && copy_run(SYS_pread64, file, copy + (data - offset), size, data) == Status::Ok;
  });
  if (good && protection_of(m) != (PROT_READ | PROT_WRITE)) {
    good = raw_syscall(SYS_mprotect, to_long(copy), to_long(length), protection_of(m)) == 0;
  }
  good = good && !is_error(raw_syscall(SYS_mremap, to_long(copy), to_long(length), to_long(length),
                                       MREMAP_MAYMOVE | MREMAP_FIXED, to_long(start)));
  if (good) {
    wake_threads(faults.file.get(), start, length);
  } else {
    let_writers_go(faults, start, length);
  }
  return good;
}

// Whether this thread's stack is, or will be, in [start, end): a fiber's may be anywhere. It would
// wait for itself.
bool may_have_stack(std::uint64_t start, std::uint64_t end) {
  constexpr std::uint64_t kDeepest = std::uint64_t{64} * 1024;  // of the calls from here
  const auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  return frame >= start && frame < end + kDeepest;
}

// Anonymous memory that takes the place of a mapping step by step. It is one piece, so that the
// steps become one mapping, which can grow.
class Replacement {
 public:
  Replacement(const FaultFile& faults, int file, const Mapping& m)
      : faults_(faults), file_(file), m_(m) {
    if (faults.mode != platform::AdoptMode::Full || write_protection_forbidden.load()) return;
    if (may_have_stack(m.start, m.end)) return;
    const long at = map_private(0, m.end - m.start, MAP_ANONYMOUS, -1, 0);
    if (!is_error(at)) memory_ = static_cast<std::uint64_t>(at);
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  // Once for each step. Returns false, without a change, if it cannot be done.
  bool take_place(std::uint64_t start, std::uint64_t end) {
    if (memory_ == 0) return false;
    const std::uint64_t copy = memory_ + (start - m_.start);
    if (replace(faults_, file_, m_, start, end - start, copy)) return true;
    // Only this: others may have got what has left.
    (void)raw_syscall(SYS_munmap, to_long(copy), to_long(end - start));
    return false;
  }

 private:
  const FaultFile& faults_;
  int file_;
  const Mapping& m_;
  std::uint64_t memory_ = 0;  // 0: none
};

// A private mapping of the file takes the place of the shared one, and gets pages of its own.
bool return_as_copies(int file, const Mapping& m, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t length = end - start;
  const std::uint64_t offset = m.offset + (start - m.start);
  if (is_error(map_private(start, length, MAP_FIXED, file, offset))) return false;
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for_data(file, offset, length, [&](std::uint64_t data, std::uint64_t size) {
    const std::uint64_t at = start + (data - offset);
    const long done = raw_syscall(SYS_madvise, to_long(at), to_long(size), MADV_POPULATE_WRITE);
    if (done != 0) touch_pages(at, size, page_size);  // before Linux 5.14
  });
  if (!m.readable || !m.writable) {
    (void)raw_syscall(SYS_mprotect, to_long(start), to_long(length), protection_of(m));
  }
  return true;
}

void return_step(Replacement& replacement, int file, const Mapping& m, std::uint64_t start,
                 std::uint64_t end) {
  if (!replacement.take_place(start, end) && !return_as_copies(file, m, start, end)) return;
  const std::uint64_t length = end - start;
  const std::uint64_t offset = m.offset + (start - m.start);
  // The file's pages have no user left: the memory is freed, and MADV_DONTNEED finds zeros.
  (void)raw_syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    to_long(offset), to_long(length));
}

}  // namespace

void forbid_write_protection(bool forbid) {
  write_protection_forbidden.store(forbid);
}

void give_back_pages(const platform::AdoptedPages& pages) {
  const CancelGuard no_cancel;
  const FaultFile faults = open_fault_file(adopt_mode_limit());
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
    Replacement replacement(faults, pages.file.get(), m);
    // mremap() may have grown the mapping beyond the end of the range.
    for (std::uint64_t from = m.start; from < m.end;) {
      const std::uint64_t next = step_end(from, m.end);
      return_step(replacement, pages.file.get(), m, from, next);
      from = next;
    }
  }
}

}  // namespace ib::os
