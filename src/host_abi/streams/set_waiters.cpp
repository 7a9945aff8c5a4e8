// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One word for each number: the thread, and the forks of the process until then, since a child has
// the same sets.
#include "host_abi/streams/set_waiters.h"

#include "host_abi/sockets/common/own_process.h"
#include "host_abi/streams/table.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace ib::host_abi::stream_switch {
namespace {

// Instead of a thread. One that was not seen made may be others', too: it counts as that of many.
constexpr std::uint32_t kUnknown = 0;
constexpr std::uint32_t kNobody = 1;
constexpr std::uint32_t kMany = 2;
constexpr std::uint32_t kShared = 3;
constexpr std::uint32_t kOpenAtExec = 4;
constexpr std::uint32_t kFirstThread = 5;

constinit std::array<std::atomic<std::uint64_t>, kMostDescriptors> waiters{};
constinit std::atomic<std::uint32_t> next_thread{kFirstThread};
constinit thread_local std::uint32_t this_thread = 0;

std::uint64_t word_of(std::uint32_t who) {
  if (who != kNobody && who < kFirstThread) return who;
  return static_cast<std::uint64_t>(sockets::generation() + forks()) << 32 | who;
}

// An address would be that of another thread once this one has ended.
std::uint64_t own_word() {
  if (this_thread == 0) this_thread = next_thread.fetch_add(1);
  return word_of(this_thread);
}

std::atomic<std::uint64_t>& waiter_of(int set) {
  return waiters[static_cast<std::size_t>(set)];
}

}  // namespace

void note_made(int set, bool closes_at_exec) {
  if (has_place(set)) waiter_of(set).store(word_of(closes_at_exec ? kNobody : kOpenAtExec));
}

bool note_closes_at_exec(int set, bool on) {
  if (!is_set(set)) return true;
  std::uint64_t before = kOpenAtExec;
  if (on) {
    waiter_of(set).compare_exchange_strong(before, word_of(kNobody));
    return true;
  }
  before = waiter_of(set).load();
  while (before > kOpenAtExec) {
    if (waiter_of(set).compare_exchange_weak(before, kOpenAtExec)) return false;
  }
  return true;
}

void note_added(int set) {
  std::uint64_t unknown = kUnknown;
  if (has_place(set)) waiter_of(set).compare_exchange_strong(unknown, word_of(kMany));
}

bool is_set(int fd) {
  return has_place(fd) && waiter_of(fd).load(std::memory_order_relaxed) != kUnknown;
}

bool note_waiter(int set) {
  if (!has_place(set)) return true;
  std::uint64_t seen = waiter_of(set).load(std::memory_order_relaxed);
  const std::uint64_t own = own_word();
  if (seen == own || (seen <= kOpenAtExec && seen != kNobody)) return true;
  if (seen == word_of(kNobody) && waiter_of(set).compare_exchange_strong(seen, own)) return true;
  waiter_of(set).store(word_of(kMany));
  return false;
}

bool is_only_waiter(int set) {
  return has_place(set) && waiter_of(set).load() == own_word();
}

void share_set(int set) {
  if (has_place(set)) waiter_of(set).store(kShared);
}

bool is_shared_set(int set) {
  return has_place(set) && waiter_of(set).load(std::memory_order_relaxed) == kShared;
}

void forget_waiter(int set) {
  if (has_place(set)) waiter_of(set).store(word_of(kUnknown));
}

}  // namespace ib::host_abi::stream_switch
