// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt.h"

#include "linux/adopt_move.h"
#include "linux/adopt_registry.h"
#include "linux/client_handle.h"
#include "linux/client_signals.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace ib::os {
namespace {

using platform::AdoptedPages;
using platform::AdoptMode;
using platform::NativeHandle;

// AdoptMode + 1; 0: not known yet.
constinit std::atomic<std::uint32_t> detected{0};
constinit std::atomic<std::uint32_t> limit{static_cast<std::uint32_t>(AdoptMode::Full)};

AdoptMode mode_limit() {
  return static_cast<AdoptMode>(limit.load(std::memory_order_relaxed));
}

bool is_single_threaded() {
  struct stat status {};
  // The directory has a link per thread, one for itself and one from above.
  return ::stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

Result<NativeHandle> make_file(std::uint64_t length) {
  rlimit file_size{};
  // A larger file would raise SIGXFSZ instead of failing.
  if (::getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur < length) {
    return Status::NotSupported;
  }
  constexpr unsigned kNoExec = 8;  // MFD_NOEXEC_SEAL, Linux 6.3; demanded by some systems
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = raw_syscall(SYS_memfd_create, to_long(kPagesName), kFlags | kNoExec);
  if (is_error(fd)) fd = raw_syscall(SYS_memfd_create, to_long(kPagesName), kFlags);
  if (is_error(fd)) return Status::InsufficientResources;
  NativeHandle file = own_descriptor(static_cast<int>(fd));
  if (raw_syscall(SYS_ftruncate, file.get(), to_long(length)) != 0) {
    return Status::InsufficientResources;
  }
  // Peers map the file: it must not become shorter under them.
  (void)::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  return file;
}

// Moves the pages step by step; `at` tells how far it came.
Status move_all(const Mover& mover, MapsReader& maps, std::uint64_t& at, std::uint64_t start,
                std::uint64_t end) {
  while (at < end) {
    Mapping m;
    if (!maps.find(at, m) || m.start > at) return Status::NotSupported;
    const std::uint64_t next = step_end(at, std::min(m.end, end));
    IB_CHECK(move_step(mover, at, next, at - start, m.given_back()));
    at = next;
  }
  return Status::Ok;
}

bool remember(const AdoptedPages& pages) {
  AdoptedRanges* ranges = adopted_ranges();
  if (ranges == nullptr) return false;
  try {
    ranges->insert_or_assign(
        pages.address, AdoptedRange{pages.length, identity_of(pages.file.get()), pages.file.get()});
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

// Checks, then moves; on failure `moved` bytes have to be given back.
Status adopt_range(const AdoptedPages& pages, std::uint64_t page_size, std::uint64_t& moved) {
  const std::uint64_t end = pages.address + pages.length;
  const auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const FaultFile faults = open_fault_file(mode_limit());
  if (!faults.file.valid() && !is_single_threaded()) return Status::NotSupported;
  MapsReader maps;
  IB_CHECK(check_private_range(maps, pages.address, end, frame));
  // Only now, as another region may have pages at this address; and not later, as it may fail.
  if (!remember(pages)) return Status::InsufficientResources;
  const NativeHandle page_map = own_descriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const Mover mover{.fault_file = faults.file.get(),
                    .page_map = page_map.get(),
                    .target = pages.file.get(),
                    .has_minor = faults.has_minor,
                    .page_size = page_size};
  std::uint64_t at = pages.address;
  const Status status = move_all(mover, maps, at, pages.address, end);
  moved = at - pages.address;
  if (status != Status::Ok && moved == 0) (void)adopted_ranges()->erase(pages.address);
  return status;
}

}  // namespace

AdoptMode adopt_mode() {
  std::uint32_t known = detected.load(std::memory_order_relaxed);
  if (known == 0) {
    known = static_cast<std::uint32_t>(open_fault_file(AdoptMode::Full).mode) + 1;
    detected.store(known, std::memory_order_relaxed);
  }
  return std::min(static_cast<AdoptMode>(known - 1), mode_limit());
}

void limit_adopt_mode(std::optional<AdoptMode> mode) {
  limit.store(static_cast<std::uint32_t>(mode.value_or(AdoptMode::Full)),
              std::memory_order_relaxed);
}

Result<AdoptedPages> adopt_pages(std::uint64_t address, std::uint64_t length) {
  if (sizeof(void*) < 8) return Status::NotSupported;  // no room to move things about
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (length < page_size || address + length < address) return Status::NotSupported;
  AdoptedPages pages;
  pages.address = (address + page_size - 1) / page_size * page_size;
  const std::uint64_t end = (address + length) / page_size * page_size;
  if (pages.address >= end) return Status::NotSupported;
  pages.length = end - pages.address;

  const CancelGuard no_cancel;
  const SignalGuard no_signals;
  watch_forks();
  std::uint64_t moved = 0;
  Status status = Status::Ok;
  {
    const AdoptLock lock;
    IB_TRY(file, make_file(pages.length));
    pages.file = std::move(file);
    status = adopt_range(pages, page_size, moved);
  }
  if (status == Status::Ok) return pages;
  // Only what is mapped from the file is given back: the steps that were done.
  if (moved != 0) give_back_pages(pages);
  return status;
}

}  // namespace ib::os
