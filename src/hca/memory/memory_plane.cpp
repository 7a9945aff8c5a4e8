// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/memory_plane.h"

#include "hca/layout/quiescence.h"

namespace ib::hca {

MemoryPlane::MemoryPlane(const Arena& arena, PosterHost& host, std::uint32_t slot, Path path)
    : arena_(arena),
      host_(host),
      slot_(slot),
      path_(path),
      thread_words_(*arena.slot(slot)),
      local_(arena, slot),
      far_(arena, host, slot, path != Path::Bounce),
      remote_keys_(arena, host, slot, local_, far_),
      mover_(arena, host, slot, far_),
      bounces_(arena, host, slot, local_.keys()) {}

bool MemoryPlane::quiesce_from_inside() {
  constexpr std::uint32_t kRounds = 1'000'000;
  ThreadWord& self = thread_words_.mine();
  Quiescence quiet(arena_, host_.barriers(), slot_, &self);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    // Still odd, but changed: two threads that wait for each other both make progress.
    self.sequence.fetch_add(2, std::memory_order_release);
    if (quiet.done()) return true;
    host_.relax(round);
  }
  return false;
}

void MemoryPlane::introduce(const platform::ProcessName& self) {
  ProcessSlot& slot = *arena_.slot(slot_);
  slot.own_pid.store(self.pid, std::memory_order_relaxed);
  slot.plate_number.store(self.plate.number, std::memory_order_relaxed);
  slot.plate_address.store(self.plate.address, std::memory_order_release);
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
