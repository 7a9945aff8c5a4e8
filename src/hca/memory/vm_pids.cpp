// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/vm_pids.h"

namespace ib::hca {

namespace {

constexpr std::uint64_t cached_pid(std::uint32_t generation, std::uint32_t pid) {
  return std::uint64_t{generation} << 32 | pid;
}

}  // namespace

VmPids::VmPids(const Arena& arena, PosterHost& host, bool allowed)
    : arena_(arena),
      host_(host),
      allowed_(allowed),
      pids_(new std::atomic<std::uint64_t>[kMaxSlots]()) {}

// In the same pid namespace the process has the id by which it calls itself; in one around it, it
// may have the one that softibd sees. Its nameplate decides.
std::uint32_t VmPids::find(std::uint32_t index, std::uint32_t generation) const {
  const ProcessSlot& slot = *arena_.slot(index);
  for (const std::uint32_t pid : {slot.own_pid.load(std::memory_order_relaxed), slot.pid}) {
    const platform::ProcessName name = name_of(slot, pid);
    std::uint64_t number = 0;
    if (pid == 0 || name.plate.address == 0 ||
        host_.read_process(name, name.plate.address, &number, sizeof number) != Status::Ok) {
      continue;
    }
    pids_[index].store(cached_pid(generation, pid), std::memory_order_relaxed);
    return pid;
  }
  give_up(index, generation);
  return kNone;
}

void VmPids::give_up(std::uint32_t index, std::uint32_t generation) const {
  pids_[index].store(cached_pid(generation, kNone), std::memory_order_relaxed);
}

}  // namespace ib::hca
