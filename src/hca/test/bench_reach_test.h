// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests and fuzzers: which memory of the two processes of a BenchHost can be touched, and how
// process_vm answers. Both are this process; process_vm is a memcpy.
#pragma once

#include "base/result.h"
#include "hca/memory/local_keys.h"
#include "platform/process_name.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace ib::hca {

// The name of every process here.
inline constexpr std::uint32_t kBenchPid = 4711;
inline const std::uint64_t bench_plate = 0x1234'5678'9abc'def0;

class BenchReach {
 public:
  // As those of PosterHost.
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t n) {
    vm_pids.push_back(who.pid);
    const Status answer = vm_answer(who, from, n);
    if (answer == Status::Ok) std::memcpy(to, std::bit_cast<const void*>(from), n);
    return answer;
  }
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t n) {
    vm_pids.push_back(who.pid);
    const Status answer = vm_answer(who, to, n);
    if (answer == Status::Ok) std::memcpy(std::bit_cast<void*>(to), from, n);
    return answer;
  }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) const {
    if (is_gone(from, n)) return platform::OwnCopy::NoSource;
    if (is_gone(to, n)) return platform::OwnCopy::NoTarget;
    std::memcpy(to, from, n);
    return platform::OwnCopy::Done;
  }
  // Memory of either process that would be a signal to touch.
  bool is_gone(const void* at, std::size_t n) const {
    const auto address = std::bit_cast<std::uint64_t>(at);
    return address < gone.first + gone.second && gone.first < address + n;
  }

  Status vm = Status::Ok;
  std::uint32_t other_pid = kBenchPid;
  std::vector<std::uint32_t> vm_pids;  // of the calls, one by one
  std::pair<std::uint64_t, std::uint64_t> gone{};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> accessible;  // of the other process

 private:
  Status vm_answer(const platform::ProcessName& who, std::uint64_t address, std::size_t n) const {
    if (vm != Status::Ok) return vm;
    // Anyone may have scribbled over the name in device memory: there is no plate elsewhere.
    if (who.pid != other_pid || who.plate.number != bench_plate ||
        who.plate.address != std::bit_cast<std::uint64_t>(&bench_plate)) {
      return Status::Disconnected;
    }
    if (address == who.plate.address) return Status::Ok;
    return is_accessible_to_vm(address, n) ? Status::Ok : Status::Malformed;
  }
  bool is_accessible_to_vm(std::uint64_t address, std::uint64_t n) const {
    const bool is_listed = std::any_of(
        accessible.begin(), accessible.end(),
        [&](const auto& range) { return in_range(address, n, range.first, range.second); });
    return is_listed && !is_gone(std::bit_cast<const void*>(address), n);
  }
};

}  // namespace ib::hca
