// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt.h"

#include "base/address.h"
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/adopt_registry.h"
#include "linux/adopt/adopt_room.h"
#include "linux/adopt/pin_sources.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "linux/process/client_wait.h"
#include "linux/process/kept_descriptor.h"

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

// AdoptMode + 1; 0: not determined.
// Relaxed, all three: each is a word by itself, and threads that detect at once find the same.
constinit std::atomic<std::uint32_t> detected{0};
constinit std::atomic<std::uint32_t> limit{static_cast<std::uint32_t>(AdoptMode::Full)};

constinit std::atomic<bool> move_forbidden{false};

// Far beyond any memory: mremap() may grow an adopted or returned mapping, and the new part must be
// in the file.
constexpr std::uint64_t kEndlessFile = 1ull << 46;

Result<NativeHandle> make_file(std::uint64_t length) {
  rlimit file_size{};
  // A file beyond the limit would raise SIGXFSZ instead of failing.
  if (::getrlimit(RLIMIT_FSIZE, &file_size) != 0) return Status::IoError;
  if (file_size.rlim_cur < length) return Status::NotSupported;
  constexpr unsigned kNoExec = 8;  // MFD_NOEXEC_SEAL, Linux 6.3; demanded by some systems
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = raw_syscall(SYS_memfd_create, to_long(kPagesName), kFlags | kNoExec);
  if (is_error(fd)) fd = raw_syscall(SYS_memfd_create, to_long(kPagesName), kFlags);
  if (is_error(fd)) return Status::InsufficientResources;
  NativeHandle file = own_descriptor(static_cast<int>(fd));
  const std::uint64_t size = std::min<std::uint64_t>(kEndlessFile, file_size.rlim_cur);
  if (raw_syscall(SYS_ftruncate, file.get(), to_long(size)) != 0) {
    return Status::InsufficientResources;
  }
  // Peers map the file: it must not become shorter under them.
  (void)::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  return file;
}

// The rules under which pages may move at all.
Result<Mover> make_mover(const FaultFile& faults, int page_map, int target,
                         std::uint64_t page_size) {
  if (faults.mode != AdoptMode::Full && !is_single_threaded()) return Status::NotSupported;
  return Mover{.fault_file = faults.file.get(),
               .page_map = page_map,
               .target = target,
               .has_minor = faults.has_minor,
               .has_move = faults.has_move && !has_spliced_memory() && !move_forbidden.load(),
               .page_size = page_size};
}

struct Mappings {
  std::size_t count = 0;
  bool some_given_back = false;
};

Mappings mappings_of(MapsReader& maps, std::uint64_t start, std::uint64_t end) {
  Mappings result;
  Mapping m;
  for (std::uint64_t at = start; at < end && maps.find(at, m); at = m.end) {
    ++result.count;
    result.some_given_back = result.some_given_back || m.given_back();
  }
  return result;
}

// Moves the pages step by step; `at` is the end of the moved part.
Status move_all(const Mover& mover, MapsReader& maps, AdoptedRange& range, std::uint64_t& at,
                std::uint64_t end) {
  const std::uint64_t start = at;
  std::vector<KeptMapping>& kept = range.kept;
  while (at < end) {
    Mapping m;
    if (!maps.find(at, m) || m.start > at) return Status::NotSupported;
    KeptMapping whole{at, std::min(m.end, end), 0};
    Step step{.offset = at - start, .given_back = m.given_back()};
    // No memory is allocated while threads may be stopped.
    const bool has_place = kept.size() < kept.capacity();
    step.keeps = has_place && !step.given_back && can_keep(mover, whole.start, whole.end);
    while (at < whole.end) {
      step.start = at;
      step.end = step_end(at, whole.end);
      step.offset = at - start;
      std::uint64_t page = 0;
      IB_CHECK(move_step(mover, step, page));
      at = step.end;
      if (step.start != whole.start) continue;
      whole.at = page;
      if (has_place) kept.push_back(whole);
      step.keeps = false;
    }
  }
  return Status::Ok;
}

// Returns the entry of the range, with space for as many kept mappings, or nullptr if there is no
// memory.
AdoptedRange* remember(const AdoptedPages& pages, std::size_t mappings, std::uint64_t page_size) {
  AdoptedRanges* ranges = adopted_ranges();
  if (ranges == nullptr) return nullptr;
  try {
    AdoptedRange range{pages.length, identity_of(pages.file.get()), pages.file.get(), {}};
    range.kept.reserve(mappings);
    AdoptedRange& entry = (*ranges)[pages.address];
    drop_kept(entry.kept, page_size);  // of pages that the program has unmapped
    entry = std::move(range);
    return &entry;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Checks, then moves. If it has to stop on the way, the moved part stays adopted: something may
// hold those pages.
Status adopt_range(AdoptedPages& pages, Mover mover, std::uint64_t most) {
  const std::uint64_t end = pages.address + pages.length;
  const auto frame = address_of(__builtin_frame_address(0));
  MapsReader maps;
  IB_CHECK(check_private_range(maps, pages.address, end, frame));
  const Mappings mappings = mappings_of(maps, pages.address, end);
  IB_TRY(touched, touched_bytes(mover, pages.address, end));
  if (touched > most) return Status::NotSupported;
  if (!mover.has_move || mappings.some_given_back) {
    mover.trusts_pins = is_single_threaded() && !may_pin_pages();
    if (touched != 0 && !mover.trusts_pins) return Status::DeviceBusy;
  }
  pages.copied = touched;
  // Only now, as another region may have pages at this address; and not later, as it may fail.
  AdoptedRange* range = remember(pages, mappings.count, mover.page_size);
  if (range == nullptr) return Status::InsufficientResources;
  std::uint64_t at = pages.address;
  const Status status = move_all(mover, maps, *range, at, end);
  if (status == Status::Ok) return status;
  if (at == pages.address) {
    (void)adopted_ranges()->erase(pages.address);
    return status;
  }
  range->length = pages.length = at - pages.address;
  return Status::Ok;
}

}  // namespace

bool is_single_threaded() {
  struct stat status {};
  // The directory has a link per thread, one for itself and one from above.
  return ::stat("/proc/self/task", &status) == 0 &&
         status.st_nlink == 3 + background_thread_count();
}

AdoptMode adopt_mode_limit() {
  return static_cast<AdoptMode>(limit.load(std::memory_order_relaxed));
}

AdoptMode adopt_mode() {
  std::uint32_t known = detected.load(std::memory_order_relaxed);
  if (known == 0) {
    known = static_cast<std::uint32_t>(open_fault_file(AdoptMode::Full).mode) + 1;
    detected.store(known, std::memory_order_relaxed);
  }
  return std::min(static_cast<AdoptMode>(known - 1), adopt_mode_limit());
}

void limit_adopt_mode(std::optional<AdoptMode> mode) {
  limit.store(static_cast<std::uint32_t>(mode.value_or(AdoptMode::Full)),
              std::memory_order_relaxed);
}

void forbid_page_move(bool forbid) {
  move_forbidden.store(forbid, std::memory_order_relaxed);
}

platform::ClientHost::Presence adopted_presence(const AdoptedPages& pages, std::uint64_t address,
                                                std::uint64_t length) {
  using Presence = platform::ClientHost::Presence;
  MapsReader maps;
  const FileIdentity file = identity_of(pages.file.get());
  const std::uint64_t end = address + length;
  std::uint64_t present = 0;
  Mapping m;
  for (std::uint64_t at = address; at < end && maps.find(at, m) && m.start < end; at = m.end) {
    if (!is_adopted_mapping(m, file, pages.address)) continue;
    present += std::min(m.end, end) - std::max(m.start, at);
  }
  if (present == length) return Presence::Whole;
  return present == 0 ? Presence::Gone : Presence::Partial;
}

Result<AdoptedPages> adopt_pages(std::uint64_t address, std::uint64_t length, std::uint64_t most) {
  if (sizeof(void*) < 8) return Status::NotSupported;  // no room to move mappings
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (length < page_size || address + length < address) return Status::NotSupported;
  AdoptedPages pages;
  pages.address = (address + page_size - 1) / page_size * page_size;
  const std::uint64_t end = (address + length) / page_size * page_size;
  if (pages.address >= end) return Status::NotSupported;
  pages.length = end - pages.address;

  const CancelGuard no_cancel;
  if (!has_room_to_adopt()) return Status::InsufficientResources;
  const FaultFile faults = open_fault_file(adopt_mode_limit());
  const NativeHandle page_map = own_descriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  IB_TRY(file, make_file(pages.length));
  pages.file = keep_descriptor(std::move(file));
  const auto mover = make_mover(faults, page_map.get(), pages.file.get(), page_size);
  if (!mover) return mover.error();
  watch_forks();
  const SignalGuard no_signals;
  const AdoptLock lock;
  const Status status = adopt_range(pages, *mover, most);
  if (status != Status::Ok) return status;
  return pages;
}

}  // namespace ib::os
