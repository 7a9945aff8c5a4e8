// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/far_memory.h"

#include "base/address.h"

namespace ib::hca {

Access FarMemory::copy(const Stretch& at, std::uint64_t offset, std::byte* local, std::uint64_t n,
                       BounceOp op) {
  const ProcessSlot* slot = arena_.slot(at.slot);
  if (slot == nullptr || slot->live.load(std::memory_order_acquire) == 0) {
    return failed(Cause::PeerProcessGone, slot != nullptr ? slot->pid : 0);
  }
  const std::uint32_t generation = slot->generation.load(std::memory_order_acquire);
  const std::uint32_t pid = pids_.of(at.slot);
  if (pid == kNone) return bounces_.copy(at, offset, local, n, op);
  const platform::ProcessName who = VmPids::name_of(*slot, pid);
  const Status status = op == BounceOp::Write
                            ? host_.write_process(who, at.address + offset, local, n)
                            : host_.read_process(who, at.address + offset, local, n);
  if (status == Status::Ok) return {};
  if (status == Status::NotFound) return failed(Cause::PeerProcessGone, slot->pid);
  if (status == Status::AccessDenied || status == Status::Disconnected) {
    pids_.give_up(at.slot, generation);
    return bounces_.copy(at, offset, local, n, op);
  }
  if (!host_.is_accessible(local, n, op == BounceOp::Read)) {
    return failed(Cause::LocalMemoryGone, address_of(local));
  }
  return failed(Cause::MemoryGone, at.address + offset);
}

bool FarMemory::copy(const CachedFar& known, std::uint64_t address, std::byte* local,
                     std::uint64_t n, BounceOp op) {
  Stretch there;
  there.kind = Stretch::Kind::Remote;
  there.key = known.key;
  there.slot = known.slot;
  there.address = known.address + (address - known.first);
  there.length = n;
  return copy(there, 0, local, n, op).ok();
}

}  // namespace ib::hca
