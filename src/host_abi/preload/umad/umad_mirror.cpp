// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/umad/umad_mirror.h"

#include "verbs/control_umad.h"

namespace ib::host_abi::preload {
namespace {

using verbs::control::kUmadHeader;
using verbs::control::kUmadHeaderWithPkey;

// A file's word: its number, whether it has P_Keys, that the word is used, its agents.
constexpr std::uint64_t kUsed = std::uint64_t{1} << 32;
constexpr std::uint64_t kHasPkeys = std::uint64_t{1} << 33;
constexpr unsigned kFileShift = 34;

std::uint64_t key_of(std::uint32_t file, std::uint32_t tid) {
  return std::uint64_t{file + 1} << 32 | tid;
}

}  // namespace

std::uint64_t UmadMirror::word(std::uint32_t file) const {
  const std::uint64_t word = files_[file % kFiles].load(std::memory_order_acquire);
  return (word & kUsed) != 0 && word >> kFileShift == file ? word : 0;
}

void UmadMirror::note(std::uint32_t file, std::size_t header_size, std::uint32_t agents) {
  const std::uint64_t word = std::uint64_t{file} << kFileShift | kUsed |
                             (header_size == kUmadHeaderWithPkey ? kHasPkeys : 0) | agents;
  files_[file % kFiles].store(word, std::memory_order_release);
}

void UmadMirror::forget_agent(std::uint32_t file, std::uint32_t agent) {
  std::uint64_t now = word(file);
  if (now == 0) return;
  const std::uint64_t without = now & ~(std::uint64_t{1} << agent % 32);
  files_[file % kFiles].compare_exchange_strong(now, without, std::memory_order_acq_rel);
}

std::size_t UmadMirror::header_size(std::uint32_t file) const {
  const std::uint64_t now = word(file);
  return now == 0 ? 0 : (now & kHasPkeys) != 0 ? kUmadHeaderWithPkey : kUmadHeader;
}

bool UmadMirror::has_agent(std::uint32_t file, std::uint32_t agent) const {
  return agent < 32 && (word(file) >> agent & 1) != 0;
}

std::size_t UmadMirror::place_of(std::uint64_t key) {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(key * kSpread >> 52);
}
static_assert(std::uint64_t{1} << (64 - 52) == 4096);

bool UmadMirror::may_send(std::uint32_t file, std::uint32_t tid, bool waits) {
  const std::uint64_t key = key_of(file, tid);
  std::atomic<std::uint64_t>& place = tids_[place_of(key)];
  if (!waits) return place.load(std::memory_order_relaxed) != key;
  return place.exchange(key, std::memory_order_relaxed) != key;
}

void UmadMirror::received(std::uint32_t file, std::uint32_t tid) {
  std::uint64_t key = key_of(file, tid);
  tids_[place_of(key)].compare_exchange_strong(key, 0, std::memory_order_relaxed);
}

}  // namespace ib::host_abi::preload
