// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Paths 2 and 3 of the memory plane, and memory that may not be there: what the kernel has to look
// at.
#include "hca/memory/memory_plane.h"

#include <algorithm>
#include <bit>

namespace ib::hca {

namespace {

Access failed(Cause cause, std::uint64_t detail = 0) {
  return {cause, false, detail};
}

std::uint64_t number_of(const void* address) {
  return std::bit_cast<std::uint64_t>(address);
}

platform::ProcessName name_of(const ProcessSlot& slot, std::uint32_t pid) {
  return {pid,
          {slot.plate_address.load(std::memory_order_acquire),
           slot.plate_number.load(std::memory_order_relaxed)}};
}

constexpr std::uint64_t cached_pid(std::uint32_t generation, std::uint32_t pid) {
  return std::uint64_t{generation} << 32 | pid;
}

}  // namespace

void MemoryPlane::introduce(const platform::ProcessName& self) {
  ProcessSlot& slot = *arena_.slot(slot_);
  slot.own_pid.store(self.pid, std::memory_order_relaxed);
  slot.plate_number.store(self.plate.number, std::memory_order_relaxed);
  slot.plate_address.store(self.plate.address, std::memory_order_release);
}

std::uint32_t MemoryPlane::vm_pid(std::uint32_t index) const {
  const ProcessSlot* slot = arena_.slot(index);
  if (slot == nullptr || path_ == Path::Bounce) return kNone;
  const std::uint32_t generation = slot->generation.load(std::memory_order_acquire);
  const std::uint64_t known = vm_pids_[index].load(std::memory_order_relaxed);
  return known >> 32 == generation ? static_cast<std::uint32_t>(known)
                                   : find_vm_pid(index, generation);
}

// In the same pid namespace the process has the id by which it calls itself; in one around it, it
// may have the one that softibd sees. Its nameplate decides.
std::uint32_t MemoryPlane::find_vm_pid(std::uint32_t index, std::uint32_t generation) const {
  const ProcessSlot& slot = *arena_.slot(index);
  for (const std::uint32_t pid : {slot.own_pid.load(std::memory_order_relaxed), slot.pid}) {
    const platform::ProcessName name = name_of(slot, pid);
    std::uint64_t number = 0;
    if (pid == 0 || name.plate.address == 0 ||
        host_.read_process(name, name.plate.address, &number, sizeof number) != Status::Ok) {
      continue;
    }
    vm_pids_[index].store(cached_pid(generation, pid), std::memory_order_relaxed);
    return pid;
  }
  give_up_vm(index, generation);
  return kNone;
}

void MemoryPlane::give_up_vm(std::uint32_t index, std::uint32_t generation) const {
  vm_pids_[index].store(cached_pid(generation, kNone), std::memory_order_relaxed);
}

Access MemoryPlane::remote_copy(const Stretch& at, std::uint64_t offset, std::byte* local,
                                std::uint64_t n, BounceOp op) {
  const ProcessSlot* slot = arena_.slot(at.slot);
  if (slot == nullptr || slot->live.load(std::memory_order_acquire) == 0) {
    return failed(Cause::PeerProcessGone, slot != nullptr ? slot->pid : 0);
  }
  const std::uint32_t generation = slot->generation.load(std::memory_order_acquire);
  const std::uint32_t pid = vm_pid(at.slot);
  if (pid == kNone) return bounce_copy(at, offset, local, n, op);
  const platform::ProcessName who = name_of(*slot, pid);
  const Status status = op == BounceOp::Write
                            ? host_.write_process(who, at.address + offset, local, n)
                            : host_.read_process(who, at.address + offset, local, n);
  if (status == Status::Ok) return {};
  if (status == Status::NotFound) return failed(Cause::PeerProcessGone, slot->pid);
  if (status == Status::AccessDenied || status == Status::Disconnected) {
    give_up_vm(at.slot, generation);
    return bounce_copy(at, offset, local, n, op);
  }
  if (!host_.is_accessible(local, n, op == BounceOp::Read)) {
    return failed(Cause::LocalMemoryGone, number_of(local));
  }
  return failed(Cause::MemoryGone, at.address + offset);
}

Access MemoryPlane::write_doubtful(std::byte* from, const Stretch& to, std::uint64_t offset,
                                   std::uint64_t n) {
  if (to.kind == Stretch::Kind::Zero) return {};
  if (to.kind == Stretch::Kind::Remote) return remote_copy(to, offset, from, n, BounceOp::Write);
  std::byte* const target = to.pointer + offset;
  switch (host_.copy_own(target, from, n)) {
    case platform::OwnCopy::Done: return {};
    case platform::OwnCopy::NoSource: return failed(Cause::LocalMemoryGone, number_of(from));
    case platform::OwnCopy::NoTarget: return failed(Cause::MemoryGone, number_of(target));
    case platform::OwnCopy::NotNow: break;
  }
  return {Cause::None, true, 0};
}

Access MemoryPlane::read_doubtful(std::byte* to, const Stretch& from, std::uint64_t offset,
                                  std::uint64_t n) {
  static const std::byte zeros[kBounceBytes]{};
  if (from.kind == Stretch::Kind::Remote) return remote_copy(from, offset, to, n, BounceOp::Read);
  const bool zero = from.kind == Stretch::Kind::Zero;
  while (n > 0) {
    const std::uint64_t step = zero ? std::min<std::uint64_t>(n, sizeof zeros) : n;
    const std::byte* source = zero ? zeros : from.pointer + offset;
    switch (host_.copy_own(to, source, step)) {
      case platform::OwnCopy::Done: break;
      case platform::OwnCopy::NoSource: return failed(Cause::MemoryGone, number_of(source));
      case platform::OwnCopy::NoTarget: return failed(Cause::LocalMemoryGone, number_of(to));
      case platform::OwnCopy::NotNow: return {Cause::None, true, 0};
    }
    to += step;
    offset += step;
    n -= step;
  }
  return {};
}

void MemoryPlane::break_own(std::uint32_t qpn, Cause cause) {
  QpEntry* qp = arena_.qp(qp_index(qpn));
  if (qp == nullptr || qp->id.qpn.load(std::memory_order_acquire) != qpn ||
      qp->id.owner_slot != slot_) {
    return;
  }
  qp->geometry.error_cause.store(cause, std::memory_order_relaxed);
  constexpr auto kFrom = verbs::QpState::Rtr;
  verbs::QpState state = qp->id.state.load(std::memory_order_relaxed);
  while (state >= kFrom && state < verbs::QpState::Error &&
         !qp->id.state.compare_exchange_weak(state, verbs::QpState::Error,
                                             std::memory_order_acq_rel)) {}
  arena_.slot(slot_)->attention.fetch_add(1, std::memory_order_release);
  host_.kick(slot_);
}

}  // namespace ib::hca
