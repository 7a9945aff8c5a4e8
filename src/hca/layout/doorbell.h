// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wakes a process for which a request or an event waits.
#pragma once

#include "base/time.h"
#include "hca/layout/layout.h"
#include "verbs/control_buffers.h"

namespace ib::hca {

inline constexpr std::uint32_t kSleeps =
    1;  // ProcessSlot::waiting: a thread sleeps on the doorbell
inline constexpr std::uint32_t kListens = 2;  // no thread does: wants an event, once

// Both sides store one word and then read the other one, `doorbell` and `waiting`: all four are in
// the one order of seq_cst, to which the kernel's look at the word before a sleep belongs (it
// passes a full barrier first), so one of the two sees the other. The first, a read-modify-write,
// also releases the request.

// Rings, and notifies the owner by its kind: `wake` wakes the threads that sleep on a word, `raise`
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

// The other side, until is_over(): round() does the work and returns the longest time to sleep,
// zero for none; sleep(word, value, longest) sleeps while the word has that value.
template <class IsOver, class Round, class Sleep>
void answer_doorbell(ProcessSlot& slot, IsOver&& is_over, Round&& round, Sleep&& sleep) {
  for (;;) {
    // First: a request that comes after the round has looked for it has rung by the time of the
    // sleep. So has the end.
    const std::uint32_t rung = slot.doorbell.load(std::memory_order_seq_cst);
    if (is_over()) return;
    const Duration longest = round();
    if (longest == Duration::zero()) continue;
    slot.waiting.store(kSleeps, std::memory_order_seq_cst);
    sleep(slot.doorbell, rung, longest);
    slot.waiting.store(0, std::memory_order_relaxed);  // who finds it too old wakes in vain
  }
}

}  // namespace ib::hca
