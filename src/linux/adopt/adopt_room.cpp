// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt_room.h"

#include "linux/adopt/adopt_registry.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <ctime>

namespace ib::os {
namespace {

constexpr std::uint64_t kMostRanges = 1024;
// A range takes three or four mappings: its own, one more for what it splits, the kept one
// (adopt_kept.h). All ranges together take at most a sixteenth of vm.max_map_count.
constexpr std::uint64_t kMappingsPerRange = 64;
// None is adopted while the process has more than this part of vm.max_map_count.
constexpr std::uint64_t kSharePart = 2;
constexpr std::uint64_t kUsualLimit = 65'530;  // where /proc does not have it

// Counting takes half a microsecond for each mapping, so it is done for at most a hundredth of the
// time.
constexpr std::uint64_t kRest = 100;
constexpr std::uint64_t kLongestRest = 1'000'000'000;  // ns

constinit std::atomic<std::uint64_t> test_limit{0};  // 0: none
constinit std::atomic<std::uint64_t> next_count{0};  // ns
constinit std::atomic<std::uint64_t> last_limit{kUsualLimit};
constinit std::atomic<bool> last_result{true};

std::uint64_t now_ns() {
  timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t most_mappings() {
  if (const std::uint64_t limit = test_limit.load()) return limit;
  const auto file = own_descriptor(::open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text;
  const long got = raw_syscall(SYS_read, file.get(), to_long(text.data()), text.size());
  std::uint64_t limit = 0;
  if (!is_error(got)) (void)std::from_chars(text.data(), text.data() + got, limit);
  return limit != 0 ? limit : kUsualLimit;
}

// Whether this process has fewer mappings than `most`; true where /proc is missing.
bool has_fewer_mappings(std::uint64_t most) {
  const auto file = own_descriptor(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;  // the kernel gives no more at once
  std::uint64_t count = 0;
  while (count < most) {
    const long got = raw_syscall(SYS_read, file.get(), to_long(text.data()), text.size());
    if (got <= 0) return true;
    count += static_cast<std::uint64_t>(std::count(text.data(), text.data() + got, '\n'));
  }
  return false;
}

// Other threads that come during a count go by the last.
bool has_room_for_mappings() {
  std::uint64_t next = next_count.load();
  const std::uint64_t start = now_ns();
  if (start < next || !next_count.compare_exchange_strong(next, start + kLongestRest)) {
    return last_result.load();
  }
  last_limit.store(most_mappings());
  const bool result = has_fewer_mappings(last_limit.load() / kSharePart);
  last_result.store(result);
  const std::uint64_t end = now_ns();
  next_count.store(end + std::min(kLongestRest, (end - start) * kRest));
  return result;
}

}  // namespace

bool has_room_to_adopt() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || !has_room_for_mappings()) return false;
  const std::uint64_t most = std::min<std::uint64_t>(
      {kMostRanges, files.rlim_cur / 4, last_limit.load() / kMappingsPerRange});
  const SignalGuard no_signals;
  const AdoptLock lock;
  const AdoptedRanges* ranges = adopted_ranges();
  return ranges != nullptr && ranges->size() < most;
}

void limit_mappings(std::optional<std::uint64_t> most) {
  test_limit.store(most.value_or(0));
  next_count.store(0);
}

}  // namespace ib::os
