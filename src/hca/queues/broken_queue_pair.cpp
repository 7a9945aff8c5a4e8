// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/broken_queue_pair.h"

namespace ib::hca {

using verbs::QpState;

void break_queue_pair(MemoryPlane& plane, QpEntry& entry, verbs::control::Cause cause,
                      std::optional<verbs::EventType> event) {
  entry.geometry.error_cause.store(cause, std::memory_order_relaxed);
  QpState state = entry.id.state.load(std::memory_order_relaxed);
  while (verbs::receives(state) &&
         !entry.id.state.compare_exchange_weak(state, QpState::Error, std::memory_order_acq_rel)) {}
  const std::uint32_t owner = entry.id.owner_slot;
  if (ProcessSlot* slot = plane.arena().slot(owner)) {
    slot->attention.fetch_add(1, std::memory_order_release);
    plane.host().kick(owner);
  }
  if (event && verbs::receives(state)) {
    plane.host().raise({verbs::control::EventObject::Qp, qp_index(entry.id.qpn.load()),
                        entry.id.generation, *event});
  }
}

}  // namespace ib::hca
