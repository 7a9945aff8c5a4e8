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

// Instead of a thread. Of a set that was not seen made nobody knows who waits there.
constexpr std::uint32_t kUnknown = 0;
constexpr std::uint32_t kNobody = 1;
constexpr std::uint32_t kMany = 2;
constexpr std::uint32_t kFirstThread = 3;

constinit std::array<std::atomic<std::uint64_t>, kMostDescriptors> waiters{};
constinit std::atomic<std::uint32_t> next_thread{kFirstThread};
constinit thread_local std::uint32_t this_thread = 0;

std::uint64_t word_of(std::uint32_t who) {
  if (who == kUnknown || who == kMany) return who;
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

void note_made(int set) {
  if (has_place(set)) waiter_of(set).store(word_of(kNobody));
}

bool note_waiter(int set) {
  if (!has_place(set)) return true;
  std::uint64_t seen = waiter_of(set).load(std::memory_order_relaxed);
  const std::uint64_t own = own_word();
  if (seen == own || seen == word_of(kUnknown) || seen == word_of(kMany)) return true;
  if (seen == word_of(kNobody) && waiter_of(set).compare_exchange_strong(seen, own)) return true;
  waiter_of(set).store(word_of(kMany));
  return false;
}

bool is_only_waiter(int set) {
  return has_place(set) && waiter_of(set).load() == own_word();
}

void share_set(int set) {
  if (has_place(set)) waiter_of(set).store(word_of(kMany));
}

void forget_waiter(int set) {
  if (has_place(set)) waiter_of(set).store(word_of(kUnknown));
}

}  // namespace ib::host_abi::stream_switch
