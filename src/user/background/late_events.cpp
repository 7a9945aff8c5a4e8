// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/late_events.h"

#include "hca/queues/late_events.h"

namespace ib::user {

void LateEvents::add(std::uint32_t cq) {
  const std::lock_guard guard(lock_);
  cqs_.push_back(cq);
}

// A queue that is gone may be another's by now: then its events go to its channel all the same.
void LateEvents::remove(std::uint32_t cq) {
  const std::lock_guard guard(lock_);
  std::erase(cqs_, cq);
}

bool LateEvents::move() {
  if (!any()) return true;
  hca::ProcessSlot* const own = arena_.slot(slot_);
  const std::lock_guard guard(lock_);
  // Before the look: an event that is counted after it says so again.
  own->late_events.store(0, std::memory_order_seq_cst);
  bool done = true;
  for (const std::uint32_t index : cqs_) {
    hca::CqEntry* const cq = arena_.cq(index);
    if (cq == nullptr || !hca::has_late_events(*cq)) continue;
    done &= hca::move_late_events(*cq, *own, EventPipe(files_, *cq, index));
  }
  return done;
}

}  // namespace ib::user
