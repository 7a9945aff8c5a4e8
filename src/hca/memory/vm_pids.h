// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// VmPids: the id by which process_vm reaches the process of each slot (path 2 of docs/design/0001).
// Found out once for each process.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/poster_host.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace ib::hca {

class VmPids {
 public:
  // `allowed`: whether process_vm may be used at all.
  VmPids(const Arena& arena, PosterHost& host, bool allowed);

  // The id as this process sees it, or kNone if it does not.
  std::uint32_t of(std::uint32_t index) const {
    const ProcessSlot* slot = arena_.slot(index);
    if (slot == nullptr || !allowed_) return kNone;
    const std::uint32_t generation = slot->generation.load(std::memory_order_acquire);
    const std::uint64_t known = pids_[index].load(std::memory_order_relaxed);
    return known >> 32 == generation ? static_cast<std::uint32_t>(known) : find(index, generation);
  }
  // process_vm has failed for that process, and will fail again.
  void give_up(std::uint32_t index, std::uint32_t generation) const;

  // By which names others find a process, which calls itself `pid`.
  static platform::ProcessName name_of(const ProcessSlot& slot, std::uint32_t pid) {
    return {pid,
            {slot.plate_address.load(std::memory_order_acquire),
             slot.plate_number.load(std::memory_order_relaxed)}};
  }

 private:
  std::uint32_t find(std::uint32_t index, std::uint32_t generation) const;

  Arena arena_;
  PosterHost& host_;
  bool allowed_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> pids_;  // by slot: its generation << 32 | of()
};

}  // namespace ib::hca
