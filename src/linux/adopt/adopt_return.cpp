// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/address.h"
#include "linux/adopt/adopt.h"
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/adopt_registry.h"
#include "linux/process/client_signals.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

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

// The means by which nothing writes to pages while copies take their place.
struct Stopper {
  explicit Stopper(const FaultFile& fault_file)
      : faults(fault_file),
        alone(!(faults.mode == platform::AdoptMode::Full && faults.has_write_protection &&
                !write_protection_forbidden.load()) &&
              is_single_threaded()) {}

  const FaultFile& faults;
  bool alone;  // no thread needs to be stopped

  bool can_stop() const {
    return alone || (faults.mode == platform::AdoptMode::Full && !write_protection_forbidden);
  }
  bool stop(std::uint64_t start, std::uint64_t length) const {
    return alone || stop_writers(faults, start, length);
  }
  // `replaced`: the pages that threads wait for are no longer there.
  void let_go(std::uint64_t start, std::uint64_t length, bool replaced) const {
    if (alone) return;
    if (replaced) {
      wake_threads(faults.file.get(), start, length);
    } else {
      let_writers_go(faults, start, length);
    }
  }
};

// From stop() on, until the threads are awake, only this frame may be written to.
bool replace(const Stopper& stopper, int file, const Mapping& m, std::uint64_t start,
             std::uint64_t length, std::uint64_t copy) {
  if (!stopper.stop(start, length)) return false;
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
  stopper.let_go(start, length, good);
  return good;
}

// Whether this thread's stack is, or will be, in [start, end): a fiber's may be anywhere. It would
// wait for itself.
bool may_have_stack(std::uint64_t start, std::uint64_t end) {
  constexpr std::uint64_t kDeepest = std::uint64_t{64} * 1024;  // of the calls from here
  const auto frame = address_of(__builtin_frame_address(0));
  return frame >= start && frame < end + kDeepest;
}

std::uint64_t page_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Anonymous memory that takes the place of what was one mapping, from low to high addresses. It is
// one piece, so that the steps become one mapping, which can grow.
class Replacement {
 public:
  Replacement(const Stopper& stopper, int file, const KeptMapping& kept)
      : stopper_(stopper), file_(file), kept_(kept), next_(kept.start), end_(kept.start) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (end_ == kept_.start) drop_kept(kept_.at, page_bytes());
    skip_to(end_);
  }

  // Before the steps of a mapping. Returns whether they can be replaced.
  bool prepare(const Mapping& m) {
    if (!stopper_.can_stop() || may_have_stack(m.start, m.end)) return false;
    if (end_ != kept_.start) return m.end <= end_;
    const std::uint64_t end = std::max(kept_.end, m.end);  // mremap() may have grown it
    const std::uint64_t length = end - kept_.start;
    if (kept_.at != 0) memory_ = grow_kept(kept_.at, page_bytes(), length, kept_.start);
    kept_.at = 0;
    if (memory_ == 0) {
      const long at = map_private(0, length, MAP_ANONYMOUS, -1, 0);
      if (is_error(at)) return false;
      memory_ = static_cast<std::uint64_t>(at);
    }
    end_ = end;
    return true;
  }

  // Returns false, without a change, if it cannot be done.
  bool take_place(const Mapping& m, std::uint64_t start, std::uint64_t end) {
    skip_to(start);
    const std::uint64_t copy = memory_ + (start - kept_.start);
    if (replace(stopper_, file_, m, start, end - start, copy)) {
      next_ = end;
      return true;
    }
    skip_to(end);
    return false;
  }

 private:
  // Frees what is not needed. Only that: others may have got what has left.
  void skip_to(std::uint64_t place) {
    if (next_ >= place) return;
    (void)raw_syscall(SYS_munmap, to_long(memory_ + (next_ - kept_.start)), to_long(place - next_));
    next_ = place;
  }

  const Stopper& stopper_;
  int file_;
  KeptMapping kept_;
  std::uint64_t memory_ = 0;  // for [kept_.start, end_); it has left, or is freed, below next_
  std::uint64_t next_;
  std::uint64_t end_;  // kept_.start: there is no memory
};

// A private mapping of the file takes the place of the shared one, and gets pages of its own.
bool return_as_copies(int file, const Mapping& m, std::uint64_t start, std::uint64_t end) {
  const std::uint64_t length = end - start;
  const std::uint64_t offset = m.offset + (start - m.start);
  if (is_error(map_private(start, length, MAP_FIXED, file, offset))) return false;
  const std::uint64_t page_size = page_bytes();
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

// `replacement`: nullptr if it cannot be done that way.
void return_step(Replacement* replacement, int file, const Mapping& m, std::uint64_t start,
                 std::uint64_t end) {
  const bool replaced = replacement != nullptr && replacement->take_place(m, start, end);
  if (!replaced && !return_as_copies(file, m, start, end)) return;
  const std::uint64_t length = end - start;
  const std::uint64_t offset = m.offset + (start - m.start);
  // The file's pages have no user left: the memory is freed, and MADV_DONTNEED finds zeros.
  (void)raw_syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    to_long(offset), to_long(length));
}

// `m`, or what of it lies in a part of the range. The last part has what mremap() has added, too.
Mapping clipped(Mapping m, const KeptMapping& part, bool is_last) {
  if (m.start < part.start) {
    m.offset += part.start - m.start;
    m.start = part.start;
  }
  if (!is_last) m.end = std::min(m.end, part.end);
  return m;
}

void return_part(const Stopper& stopper, const platform::AdoptedPages& pages,
                 const FileIdentity& file, const KeptMapping& part, bool is_last) {
  Replacement replacement(stopper, pages.file.get(), part);
  MapsReader maps;
  Mapping m;
  for (std::uint64_t at = part.start; at < part.end && maps.find(at, m) && m.start < part.end;
       at = m.end) {
    if (!is_adopted_mapping(m, file, pages.address)) continue;
    m = clipped(m, part, is_last);
    Replacement* const way = replacement.prepare(m) ? &replacement : nullptr;
    for (std::uint64_t from = m.start; from < m.end;) {
      const std::uint64_t next = step_end(from, m.end);
      return_step(way, pages.file.get(), m, from, next);
      from = next;
    }
  }
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
  std::vector<KeptMapping> parts = std::move(found->second.kept);
  ranges->erase(found);

  const Stopper stopper(faults);
  const std::uint64_t end = pages.address + pages.length;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    return_part(stopper, pages, file, parts[i], i + 1 == parts.size() && parts[i].end >= end);
  }
  // Pages without an entry: all, or those at the end.
  const std::uint64_t rest = parts.empty() ? pages.address : parts.back().end;
  if (rest < end) return_part(stopper, pages, file, {rest, end, 0}, true);
}

}  // namespace ib::os
