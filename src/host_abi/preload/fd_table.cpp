// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/fd_table.h"

#include "host_abi/preload/system_calls.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ib::host_abi::preload::fds {
namespace {

// 256 KiB of zero pages: only pages with entries of our descriptors are touched.
std::atomic<std::uint32_t> table[kLimit];
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

std::atomic<int> owner_pid{0};  // 0: no descriptor was ever marked
std::atomic<int> highest{-1};   // no descriptor above it was ever marked
std::atomic<bool> forks_watched{false};
std::atomic<bool> spliced{false};  // the program has called vmsplice()

std::atomic<int (*)(int)> create_hook{nullptr};
std::atomic<ssize_t (*)(int, void*, std::size_t, ssize_t)> read_hook{nullptr};
std::atomic<void (*)(int)> closed_hook{nullptr};
std::atomic<int (*)(void*, std::size_t, int, int*)> advise_hook{nullptr};
std::atomic<void (*)(void*, std::size_t)> mappings_hook{nullptr};
std::atomic<void (*)()> spliced_hook{nullptr};

constexpr unsigned kNumberBits = 28;
constexpr std::uint32_t kNumberMask = (1u << kNumberBits) - 1;
// The bits above hold the kind; for devices also which one, counted from Kind::Device on.
static_assert(static_cast<std::size_t>(Kind::Device) + devices::kMost == 1u << (32 - kNumberBits));

std::uint32_t pack(Entry entry) {
  auto place = static_cast<std::size_t>(entry.kind);
  if (entry.kind == Kind::Device) place += devices::index_of(*entry.device);
  return (static_cast<std::uint32_t>(place) << kNumberBits) | (entry.number & kNumberMask);
}

Entry unpack(std::uint32_t word) {
  const std::uint32_t place = word >> kNumberBits;
  constexpr auto kDevice = static_cast<std::uint32_t>(Kind::Device);
  if (place < kDevice) return {static_cast<Kind>(place), word & kNumberMask, nullptr};
  return {Kind::Device, word & kNumberMask, devices::at(place - kDevice)};
}

bool in_table(int fd) {
  return fd >= 0 && fd < kLimit;
}

// Relaxed: a child has one thread, and in a parent `forks_watched` orders it.
void remember_process() {
  owner_pid.store(sys::process_id(), std::memory_order_relaxed);
}

// Relaxed: whoever closes a number has it from the thread that opened it, with the entry; and
// nothing is found by way of the entry but constants.
void drop(int fd) {
  const Entry entry = unpack(table[fd].exchange(0, std::memory_order_relaxed));
  if (entry.device != nullptr && entry.device->closed != nullptr) entry.device->closed(fd);
}

void report_splices() {
  const auto report = spliced_hook.load(std::memory_order_seq_cst);
  if (spliced.load(std::memory_order_seq_cst) && report != nullptr) report();
}

}  // namespace

bool is_borrowed_memory() {
  return sys::process_id() != owner_pid.load(std::memory_order_relaxed);
}

// In this order: a thread that finds the forks watched finds the process remembered, too.
void watch_forks() {
  if (forks_watched.load(std::memory_order_acquire)) return;
  remember_process();
  if (forks_watched.exchange(true, std::memory_order_acq_rel)) return;
  ::pthread_atfork(nullptr, nullptr, remember_process);
}

bool mark(int fd, Entry entry) {
  if (!in_table(fd)) return false;
  watch_forks();
  int seen = highest.load(std::memory_order_relaxed);  // the exchange decides
  while (seen < fd && !highest.compare_exchange_weak(seen, fd)) continue;
  table[fd].store(pack(entry), std::memory_order_release);
  return true;
}

// Relaxed: a thread has the number from one that has seen it marked.
Entry find(int fd) {
  if (!in_table(fd) || fd > highest.load(std::memory_order_relaxed)) return {};
  return unpack(table[fd].load(std::memory_order_acquire));
}

const DeviceKind* device(int fd) {
  return device(fd, find(fd));
}

const DeviceKind* device(int fd, const Entry& entry) {
  const DeviceKind* kind = entry.device;
  if (kind == nullptr || kind->is_object == nullptr) return kind;
  const sys::KeepErrno keep;
  struct ::statx now;
  return sys::stat(fd, "", AT_EMPTY_PATH, now) == 0 && kind->is_object(now) ? kind : nullptr;
}

void forget(int fd) {
  if (find(fd).kind == Kind::None || is_borrowed_memory()) return;
  drop(fd);
}

void forget_range(unsigned first, unsigned last) {
  const int top = highest.load(std::memory_order_relaxed);
  if (top < 0 || first > static_cast<unsigned>(top) || is_borrowed_memory()) return;
  const int end = static_cast<int>(std::min(last, static_cast<unsigned>(top)));
  for (int fd = static_cast<int>(first); fd <= end; ++fd) {
    if (find(fd).kind != Kind::None) drop(fd);
  }
}

void copy(int original, int duplicate) {
  const Entry entry = find(original);
  if (entry.kind == Kind::None || is_borrowed_memory()) return;
  mark(duplicate, entry);  // a number beyond the table is not emulated
}

int set_hooks(const softib_preload_hooks* hooks) {
  softib_preload_hooks all{};
  if (hooks != nullptr) {
    const std::size_t smallest =
        offsetof(softib_preload_hooks, create_comp_channel) + sizeof(all.create_comp_channel);
    if (hooks->size < smallest) return -EINVAL;
    std::memcpy(&all, hooks, std::min(hooks->size, sizeof all));
  }
  read_hook.store(all.read_comp_channel, std::memory_order_release);
  closed_hook.store(all.closed, std::memory_order_release);
  advise_hook.store(all.advise, std::memory_order_release);
  mappings_hook.store(all.mappings_change, std::memory_order_release);
  // One order with `spliced`: either the splice is found below, or the splicer finds the hook.
  spliced_hook.store(all.spliced, std::memory_order_seq_cst);
  create_hook.store(all.create_comp_channel, std::memory_order_release);
  report_splices();
  return 0;
}

void note_splice() {
  if (!spliced.exchange(true, std::memory_order_seq_cst)) report_splices();
}

softib_preload_hooks hooks() {
  softib_preload_hooks all{};
  all.size = sizeof all;
  all.create_comp_channel = create_hook.load(std::memory_order_acquire);
  all.read_comp_channel = read_hook.load(std::memory_order_acquire);
  all.closed = closed_hook.load(std::memory_order_acquire);
  all.advise = advise_hook.load(std::memory_order_acquire);
  all.mappings_change = mappings_hook.load(std::memory_order_acquire);
  all.spliced = spliced_hook.load(std::memory_order_acquire);
  return all;
}

}  // namespace ib::host_abi::preload::fds
