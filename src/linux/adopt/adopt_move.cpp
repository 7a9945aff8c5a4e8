// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt_move.h"

#include "linux/adopt/adopt_data.h"
#include "linux/adopt/adopt_kept.h"
#include "linux/adopt/adopt_syscall.h"
#include "linux/process/client_handle.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace ib::os {
namespace {

using platform::AdoptMode;
using platform::NativeHandle;

constexpr std::uint64_t kUffdRegisterMissing = 1;
constexpr std::uint64_t kUffdRegisterProtected = 2;
constexpr std::uint64_t kUffdRegisterMinor = 4;
constexpr std::uint64_t kUffdMinorShmem = 1 << 10;
constexpr std::uint64_t kUffdProtectShmem = 1 << 12;
constexpr std::uint64_t kUffdMove = 1 << 16;
constexpr std::uint64_t kMoveHoles = 2;  // UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES
// UFFDIO_MOVE, from <linux/userfaultfd.h> of Linux 6.8; Debian 12 has older headers.
struct UffdMove {
  std::uint64_t target;
  std::uint64_t source;
  std::uint64_t length;
  std::uint64_t mode;
  std::int64_t moved;  // or -errno
};
constexpr unsigned long kUffdioMove = _IOWR(0xAA, 0x05, UffdMove);
constexpr unsigned long kNewFaultFile = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW

// Bits of /proc/self/pagemap.
constexpr std::uint64_t kPresent = 1ull << 63;
constexpr std::uint64_t kSwapped = 1ull << 62;
constexpr std::uint64_t kGuard = 1ull << 58;  // MADV_GUARD_INSTALL

long control(int file, unsigned long request, const void* argument) {
  return raw_syscall(SYS_ioctl, file, static_cast<long>(request), to_long(argument));
}

bool greet(int file, std::uint64_t features) {
  uffdio_api api{UFFD_API, features, 0};
  return control(file, UFFDIO_API, &api) == 0;
}

NativeHandle open_with_kernel_faults() {
  long fd = raw_syscall(SYS_userfaultfd, O_CLOEXEC);
  if (!is_error(fd)) return own_descriptor(static_cast<int>(fd));
  const NativeHandle device = own_descriptor(static_cast<int>(std::max(
      -1L, raw_syscall(SYS_openat, AT_FDCWD, to_long("/dev/userfaultfd"), O_RDWR | O_CLOEXEC))));
  if (!device.valid()) return {};
  fd = raw_syscall(SYS_ioctl, device.get(), static_cast<long>(kNewFaultFile), O_CLOEXEC);
  return is_error(fd) ? NativeHandle() : own_descriptor(static_cast<int>(fd));
}

FaultFile open_once(AdoptMode limit, std::uint64_t features) {
  FaultFile result;
  if (limit == AdoptMode::None) return result;
  if (limit == AdoptMode::Full) {
    result.file = open_with_kernel_faults();
    result.mode = AdoptMode::Full;
  }
  if (!result.file.valid()) {
    const long fd = raw_syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (is_error(fd)) return {};
    result.file = own_descriptor(static_cast<int>(fd));
    result.mode = AdoptMode::UserFaultsOnly;
  }
  if (!greet(result.file.get(), features)) return {};
  result.has_minor = (features & kUffdMinorShmem) != 0;
  result.has_move = (features & kUffdMove) != 0;
  result.has_write_protection = (features & kUffdProtectShmem) != 0;
  return result;
}

// Calls `run(start, length)` for the runs of pages in [start, end) that have been touched.
template <class Run>
Status for_touched(const Mover& mover, std::uint64_t start, std::uint64_t end, Run run) {
  std::array<std::uint64_t, 256> pages;  // entries; small, as a program's stack may be
  std::uint64_t run_start = start;       // touched and not handed out yet: [run_start, at)
  std::uint64_t at = start;
  while (at < end) {
    const std::uint64_t count = std::min<std::uint64_t>((end - at) / mover.page_size, pages.size());
    const long wanted = to_long(count * sizeof pages[0]);
    const long got = raw_syscall(SYS_pread64, mover.page_map, to_long(pages.data()), wanted,
                                 to_long(at / mover.page_size * sizeof pages[0]));
    for (std::uint64_t i = 0; i < count; ++i, at += mover.page_size) {
      // Unknown (no /proc): counted as touched.
      const std::uint64_t page = got == wanted ? pages[i] : kPresent;
      if ((page & kGuard) != 0) return Status::NotSupported;
      if ((page & (kPresent | kSwapped)) != 0) continue;
      if (run_start < at) IB_CHECK(run(run_start, at - run_start));
      run_start = at + mover.page_size;
    }
  }
  return run_start < end ? run(run_start, end - run_start) : Status::Ok;
}

bool stop_threads_at(const Mover& mover, std::uint64_t start, std::uint64_t length,
                     bool given_back) {
  uffdio_register request{};
  request.range = {start, length};
  request.mode = kUffdRegisterMissing;
  if (given_back) {
    // Reading an untouched page put a page of zeros into the file: "minor" faults catch that one.
    if (!mover.has_minor) return false;
    request.mode |= kUffdRegisterMinor;
  }
  return control(mover.fault_file, UFFDIO_REGISTER, &request) == 0;
}

void unregister(int file, std::uint64_t start, std::uint64_t length) {
  const uffdio_range range{start, length};
  (void)control(file, UFFDIO_UNREGISTER, &range);
}

// From here until the pages are back only this frame may be touched.
Status copy_out(const Mover& mover, const Step& step, std::uint64_t away) {
  const std::uint64_t end = away + (step.end - step.start);
  return for_touched(mover, away, end, [&](std::uint64_t from, std::uint64_t size) {
    return copy_run(SYS_pwrite64, mover.target, from, size, step.offset + (from - away));
  });
}

Status map_file(const Mover& mover, const Step& step) {
  const long mapped = raw_syscall(SYS_mmap, to_long(step.start), to_long(step.end - step.start),
                                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mover.target,
                                  to_long(step.offset));
  return is_error(mapped) ? Status::InsufficientResources : Status::Ok;
}

// Without proof that no page is pinned, only memory that holds no page moves.
Status check_pins(const Mover& mover, std::uint64_t start, std::uint64_t end) {
  if (mover.trusts_pins) return Status::Ok;
  IB_TRY(touched, touched_bytes(mover, start, end));
  return touched == 0 ? Status::Ok : Status::DeviceBusy;
}

// Moves pages from one place to another, both registered with the fault file. `done` is the end of
// the moved part. DeviceBusy: the next page is pinned, or shared with another process since a
// fork().
Status move_pages(const Mover& mover, std::uint64_t target, std::uint64_t source,
                  std::uint64_t length, std::uint64_t& done) {
  constexpr int kMostRetries = 1000;
  for (int retries = 0; done < length;) {
    UffdMove request{target + done, source + done, length - done, kMoveHoles, 0};
    const long result = control(mover.fault_file, kUffdioMove, &request);
    if (request.moved > 0) {
      done += static_cast<std::uint64_t>(request.moved);
    } else if (result == -EAGAIN && ++retries < kMostRetries) {
      continue;
    } else if (result == -EBUSY || result == -EAGAIN) {
      return Status::DeviceBusy;
    } else if (result != 0) {
      return result == -ENOMEM ? Status::InsufficientResources : Status::NotSupported;
    }
  }
  return Status::Ok;
}

// The way back. The page that was to be kept is a mapping of its own then; a request may not span
// two.
void restore_pages(const Mover& mover, std::uint64_t start, std::uint64_t away,
                   std::uint64_t moved) {
  const std::uint64_t first = std::min(moved, mover.page_size);
  std::uint64_t restored = 0;
  // The pages are this thread's alone, and their page tables are there still.
  IB_ASSERT(move_pages(mover, start, away, first, restored) == Status::Ok);
  IB_ASSERT(move_pages(mover, start, away, moved, restored) == Status::Ok);
}

// Moves page by page by UFFDIO_MOVE, which takes only pages without another holder and leaves none
// behind that could get one.
Status move_unpinned(const Mover& mover, const Step& step, std::uint64_t& kept) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::uint64_t start = step.start;
  const std::uint64_t length = step.end - start;
  const long mapped =
      raw_syscall(SYS_mmap, 0, to_long(length), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (is_error(mapped)) return Status::InsufficientResources;
  const auto away = static_cast<std::uint64_t>(mapped);
  Status status = Status::NotSupported;
  if (stop_threads_at(mover, away, length, false) && stop_threads_at(mover, start, length, false)) {
    std::uint64_t moved = 0;
    status = move_pages(mover, away, start, length, moved);
    if (status == Status::Ok) status = copy_out(mover, step, away);
    if (status == Status::Ok) {
      if (step.keeps) kept = put_aside(start, mover.page_size);
      status = map_file(mover, step);
    }
    if (status != Status::Ok) {
      drop_kept(kept, mover.page_size);
      kept = 0;
      restore_pages(mover, start, away, moved);
      unregister(mover.fault_file, start, length);
    }
    wake_threads(mover.fault_file, start, length);
  }
  (void)raw_syscall(SYS_munmap, to_long(away), to_long(length));
  return status;
}

// Of a mapping whose pages were copied.
std::uint64_t keep_first_page(const Mover& mover, std::uint64_t away, std::uint64_t length) {
  empty_kept(away, mover.page_size);
  if (length > mover.page_size) {
    (void)raw_syscall(SYS_munmap, to_long(away + mover.page_size),
                      to_long(length - mover.page_size));
  }
  return away;
}

// Moves all pages at once and checks them afterwards, when no thread can reach them.
Status move_whole(const Mover& mover, const Step& step, std::uint64_t& kept) {
  const std::uint64_t start = step.start;
  const std::uint64_t length = step.end - start;
  if (!stop_threads_at(mover, start, length, step.given_back)) return Status::NotSupported;
  const long away = raw_syscall(SYS_mremap, to_long(start), to_long(length), to_long(length),
                                MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
  if (is_error(away)) {
    unregister(mover.fault_file, start, length);
    return away == -ENOMEM ? Status::InsufficientResources : Status::NotSupported;
  }
  const auto pages = static_cast<std::uint64_t>(away);
  Status status = check_pins(mover, pages, pages + length);
  if (status == Status::Ok) status = copy_out(mover, step, pages);
  if (status == Status::Ok) status = map_file(mover, step);
  if (status != Status::Ok) {
    const long restored = raw_syscall(SYS_mremap, away, to_long(length), to_long(length),
                                      MREMAP_MAYMOVE | MREMAP_FIXED, to_long(start));
    IB_ASSERT(!is_error(restored));  // it needs no further memory
  }
  wake_threads(mover.fault_file, start, length);
  if (status != Status::Ok) return status;
  if (step.keeps) {
    kept = keep_first_page(mover, pages, length);
  } else {
    (void)raw_syscall(SYS_munmap, away, to_long(length));
  }
  return status;
}

Status move_alone(const Mover& mover, const Step& step, std::uint64_t& kept) {
  IB_CHECK(check_pins(mover, step.start, step.end));
  IB_CHECK(copy_out(mover, step, step.start));
  if (step.keeps) kept = put_aside(step.start, mover.page_size);
  const Status status = map_file(mover, step);
  if (status == Status::Ok) {
    if (kept != 0) empty_kept(kept, mover.page_size);
  } else if (kept != 0) {
    const long page = to_long(mover.page_size);
    const long restored = raw_syscall(SYS_mremap, to_long(kept), page, page,
                                      MREMAP_MAYMOVE | MREMAP_FIXED, to_long(step.start));
    IB_ASSERT(!is_error(restored));  // as above
    kept = 0;
  }
  return status;
}

// Pages that were shared by a fork() become this process's own when they are written to.
Status move_unpinned_or_unshare(const Mover& mover, const Step& step, std::uint64_t& kept) {
  const Status status = move_unpinned(mover, step, kept);
  if (status != Status::DeviceBusy) return status;
  const Status unshared =
      for_touched(mover, step.start, step.end, [](std::uint64_t from, std::uint64_t size) {
        return raw_syscall(SYS_madvise, to_long(from), to_long(size), MADV_POPULATE_WRITE) == 0
                   ? Status::Ok
                   : Status::DeviceBusy;
      });
  return unshared == Status::Ok ? move_unpinned(mover, step, kept) : unshared;
}

}  // namespace

FaultFile open_fault_file(AdoptMode limit) {
  FaultFile result = open_once(limit, kUffdMinorShmem | kUffdProtectShmem | kUffdMove);
  if (!result.file.valid()) result = open_once(limit, kUffdMinorShmem | kUffdProtectShmem);
  if (!result.file.valid()) result = open_once(limit, kUffdMinorShmem);
  if (!result.file.valid()) result = open_once(limit, 0);
  return result;
}

Status copy_run(long number, int file, std::uint64_t memory, std::uint64_t length,
                std::uint64_t offset) {
  while (length != 0) {
    const long done = raw_syscall(number, file, to_long(memory), to_long(length), to_long(offset));
    if (done == -EINTR) continue;
    if (done == -ENOMEM || done == -ENOSPC) return Status::InsufficientResources;
    if (done <= 0) return Status::IoError;
    memory += static_cast<std::uint64_t>(done);
    offset += static_cast<std::uint64_t>(done);
    length -= static_cast<std::uint64_t>(done);
  }
  return Status::Ok;
}

bool stop_writers(const FaultFile& faults, std::uint64_t start, std::uint64_t length) {
  if (faults.mode != AdoptMode::Full || !faults.has_write_protection) return false;
  uffdio_register request{};
  request.range = {start, length};
  request.mode = kUffdRegisterProtected;
  if (control(faults.file.get(), UFFDIO_REGISTER, &request) != 0) return false;
  const uffdio_writeprotect protection{{start, length}, UFFDIO_WRITEPROTECT_MODE_WP};
  if (control(faults.file.get(), UFFDIO_WRITEPROTECT, &protection) == 0) return true;
  let_writers_go(faults, start, length);
  return false;
}

void let_writers_go(const FaultFile& faults, std::uint64_t start, std::uint64_t length) {
  unregister(faults.file.get(), start, length);
  wake_threads(faults.file.get(), start, length);
}

void wake_threads(int fault_file, std::uint64_t start, std::uint64_t length) {
  const uffdio_range range{start, length};
  (void)control(fault_file, UFFDIO_WAKE, &range);
}

Result<std::uint64_t> touched_bytes(const Mover& mover, std::uint64_t start, std::uint64_t end) {
  std::uint64_t total = 0;
  const Status status = for_touched(mover, start, end, [&](std::uint64_t, std::uint64_t size) {
    total += size;
    return Status::Ok;
  });
  if (status != Status::Ok) return status;
  return total;
}

bool can_keep(const Mover& mover, std::uint64_t start, std::uint64_t end) {
  // Where pages that have been touched do not move, none may be touched for this.
  if (!mover.has_move && !mover.trusts_pins) return false;
  std::uint64_t first = start;  // that has been touched, if there is one
  const auto stop_there = [&first](std::uint64_t at, std::uint64_t) {
    first = at;
    return Status::DeviceBusy;
  };
  if (for_touched(mover, start, start + mover.page_size, stop_there) == Status::Ok) {
    (void)for_touched(mover, start, end, stop_there);
  }
  return raw_syscall(SYS_madvise, to_long(first), to_long(mover.page_size), MADV_POPULATE_WRITE) ==
         0;
}

Status move_step(const Mover& mover, const Step& step, std::uint64_t& kept) {
  kept = 0;
  Status status = Status::Ok;
  if (mover.fault_file < 0) {
    status = move_alone(mover, step, kept);
  } else if (mover.has_move && !step.given_back) {
    status = move_unpinned_or_unshare(mover, step, kept);
  } else {
    status = move_whole(mover, step, kept);
  }
  if (status != Status::Ok) return status;
  const std::uint64_t start = step.start;
  const std::uint64_t length = step.end - start;
  // A child that is made without the handlers of fork() must not share the pages.
  (void)raw_syscall(SYS_madvise, to_long(start), to_long(length), MADV_DONTFORK);
  // The program would fault on each page otherwise. Failure leaves just that.
  for_data(mover.target, step.offset, length, [&](std::uint64_t data, std::uint64_t size) {
    (void)raw_syscall(SYS_madvise, to_long(start + (data - step.offset)), to_long(size),
                      MADV_POPULATE_WRITE);
  });
  return Status::Ok;
}

}  // namespace ib::os
