// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/adopt_registry.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>

namespace ib::os {
namespace {

// The parent's wait for its child's copies is bounded: the child may be stopped.
constexpr int kLongestWaitMs = 30'000;

// Plain data without destructors: threads may still run while the program exits.
constinit std::mutex mutex;
constinit std::atomic<int> forks_waiting{0};
AdoptedRanges* ranges = nullptr;
constinit std::atomic<bool> watching{false};
pthread_once_t once = PTHREAD_ONCE_INIT;
int copied_read = -1;  // a pipe that the child closes once it has its copies
int copied_write = -1;

void close_end(int& end) {
  if (end >= 0) (void)raw_syscall(SYS_close, end);
  end = -1;
}

void fill(std::uint64_t to, std::uint64_t from, std::uint64_t length, int file,
          std::uint64_t offset) {
  if (file < 0) {
    __builtin_memcpy(reinterpret_cast<void*>(to),          // NOLINT(performance-no-int-to-ptr)
                     reinterpret_cast<const void*>(from),  // NOLINT(performance-no-int-to-ptr)
                     length);
    return;
  }
  for_data(file, offset, length, [&](std::uint64_t data, std::uint64_t size) {
    while (size != 0) {
      const long got = raw_syscall(SYS_pread64, file, to_long(to + (data - offset)), to_long(size),
                                   to_long(data));
      if (got == -EINTR) continue;
      if (got <= 0) return;
      data += static_cast<std::uint64_t>(got);
      size -= static_cast<std::uint64_t>(got);
    }
  });
}

// Replaces a piece of a mapping by anonymous memory with the same content. One thread runs here.
void make_private(const Mapping& m, std::uint64_t start, std::uint64_t end, int file) {
  const long length = to_long(end - start);
  const long copy =
      raw_syscall(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (is_error(copy)) {
    // A crash of the child is better than memory that it silently shares with its parent.
    (void)raw_syscall(SYS_mmap, to_long(start), length, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    return;
  }
  if (file >= 0 || m.readable) {
    fill(static_cast<std::uint64_t>(copy), start, end - start, file, m.offset + (start - m.start));
  }
  if (!m.readable || !m.writable) {
    const int protection = (m.readable ? PROT_READ : 0) | (m.writable ? PROT_WRITE : 0);
    (void)raw_syscall(SYS_mprotect, copy, length, protection);
  }
  (void)raw_syscall(SYS_mremap, copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
                    to_long(start));
}

void make_private_in_steps(const Mapping& m, int file) {
  for (std::uint64_t at = m.start; at < m.end;) {
    const std::uint64_t next = step_end(at, m.end);
    make_private(m, at, next, file);
    at = next;
  }
}

// Returns the range whose pages a mapping shows, or nullptr if it shows pages of a peer, or is no
// such mapping at all.
const AdoptedRange* range_of(const Mapping& m) {
  if (!m.shared || !m.name_view().starts_with(kPagesPath)) return nullptr;
  const FileIdentity file{m.inode, m.device_major, m.device_minor};
  const auto found = ranges->find(m.start - m.offset);
  if (found != ranges->end() && found->second.file == file) return &found->second;
  for (const auto& [address, range] : *ranges) {
    if (range.file == file) return &range;  // mremap() has moved the mapping
  }
  return nullptr;
}

// Calls `run(mapping, range)` for all adopted memory of this process, wherever the program has
// moved it.
template <class Run>
void for_adopted(Run run) {
  MapsReader maps;
  Mapping m;
  if (maps.valid()) {
    for (std::uint64_t at = 0; maps.find(at, m) && m.end > at; at = m.end) {
      if (const AdoptedRange* range = range_of(m)) run(m, *range);
    }
    return;
  }
  // No descriptor is left for a check: the mapping most likely still exists.
  for (const auto& [address, range] : *ranges) {
    m = Mapping{};
    m.start = address;
    m.end = address + range.length;
    m.readable = m.writable = true;
    run(m, range);
  }
}

// If the program has closed the descriptor of a file, its content is read through the mapping.
void make_all_private() {
  for_adopted([](const Mapping& m, const AdoptedRange& range) {
    const bool usable = identity_of(range.descriptor) == range.file;
    make_private_in_steps(m, usable ? range.descriptor : -1);
  });
}

void advise_all(int advice) {
  for_adopted([advice](const Mapping& m, const AdoptedRange&) {
    (void)raw_syscall(SYS_madvise, to_long(m.start), to_long(m.end - m.start), advice);
  });
}

void before_fork() {
  ++forks_waiting;
  mutex.lock();
  --forks_waiting;
  int ends[2] = {-1, -1};
  if (ranges == nullptr || ranges->empty()) return;
  advise_all(MADV_DOFORK);
  if (is_error(raw_syscall(SYS_pipe2, to_long(ends), O_CLOEXEC))) return;
  copied_read = ends[0];
  copied_write = ends[1];
}

// The parent goes on only when the child has copied: this thread's next changes must not show in
// the child. (Other threads, and peers' RDMA writes, are not stopped.)
void in_parent() {
  close_end(copied_write);
  if (copied_read >= 0) {
    const CancelGuard no_cancel;
    pollfd end{copied_read, POLLIN, 0};
    while (::poll(&end, 1, kLongestWaitMs) < 0 && errno == EINTR) {}
  }
  close_end(copied_read);
  if (ranges != nullptr && !ranges->empty()) advise_all(MADV_DONTFORK);
  mutex.unlock();
}

void in_child() {
  close_end(copied_read);  // first: it frees a descriptor for the next line
  if (ranges != nullptr && !ranges->empty()) {
    make_all_private();
    const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    for (const auto& [address, range] : *ranges) drop_kept(range.kept, page_size);
  }
  forks_waiting = 0;  // other threads that were about to fork do not exist here
  ranges = nullptr;   // not freed: an allocator of the program may not work in a child
  close_end(copied_write);
  mutex.unlock();
}

}  // namespace

AdoptLock::AdoptLock() {
  while (forks_waiting.load() != 0) (void)::sched_yield();
  mutex.lock();
}
AdoptLock::~AdoptLock() {
  mutex.unlock();
}

AdoptedRanges* adopted_ranges() {
  if (ranges == nullptr) ranges = new (std::nothrow) AdoptedRanges;
  return ranges;
}

// Relaxed: what was adopted is found under the lock (AdoptLock).
bool has_ever_adopted() {
  return watching.load(std::memory_order_relaxed);
}

void watch_forks() {
  watching.store(true, std::memory_order_relaxed);
  (void)pthread_once(&once, [] { (void)pthread_atfork(before_fork, in_parent, in_child); });
}

}  // namespace ib::os
