// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How to tell a process that something waits for it.
#pragma once

#include "hca/layout.h"
#include "verbs/control_buffers.h"

namespace ib::hca {

inline constexpr std::uint32_t kSleeps =
    1;  // ProcessSlot::waiting: a thread sleeps on the doorbell
inline constexpr std::uint32_t kListens = 2;  // no thread does: wants an event, once

// Rings, and does what the owner needs to hear it: `wake` wakes whoever sleeps on a word, `raise`
// reports an event to softibd.
template <class Wake, class Raise>
void ring_doorbell(ProcessSlot& slot, std::uint32_t index, Wake&& wake, Raise&& raise) {
  slot.doorbell.fetch_add(1, std::memory_order_seq_cst);
  std::uint32_t waiting = slot.waiting.load(std::memory_order_seq_cst);
  if (waiting == kListens && slot.waiting.compare_exchange_strong(waiting, 0)) {
    raise(verbs::control::RaiseEventIn{verbs::control::EventObject::Device, index,
                                       slot.generation.load(std::memory_order_relaxed),
                                       verbs::EventType::Attention});
  } else if (waiting == kSleeps) {
    wake(slot.doorbell);
  }
}

}  // namespace ib::hca
