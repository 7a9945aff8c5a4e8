// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Quiescence: how posters, who read device memory without locks, and those who change
// or reuse it find each other (an RCU of processes).
//
// A thread holds an OpScope (op_scope.h) while it executes a work request: its ThreadWord is odd.
// Whoever wants to take something away first makes it unfindable (state Invalid, qpn 0 ...), then
// waits until every word that was odd has changed. Between the change and the look at the words it
// has all processes pass a barrier (platform/barriers.h), so either a poster sees the change or the
// waiter sees the odd word, and entering an OpScope costs no exchange. Where a process of the
// fabric cannot do that, ArenaHeader::fenced_entries has posters pass barriers of their own.
#pragma once

#include "base/assert.h"
#include "hca/arena.h"
#include "platform/barriers.h"

#include <utility>
#include <vector>

namespace ib::hca {

// Usage: store the change, construct, poll done() until true (it never goes back to false).
class Quiescence {
 public:
  // `self`: a ThreadWord of the caller's that does not count (it may hold a guard itself).
  Quiescence(const Arena& arena, platform::Barriers& barriers, const ThreadWord* self = nullptr) {
    arena.header().changes.fetch_add(1, std::memory_order_acq_rel);
    barriers.processes();
    const std::uint32_t used = arena.header().slots_used.load(std::memory_order_acquire);
    for (std::uint32_t s = 0; s < used && s < kMaxSlots; ++s) {
      ProcessSlot& slot = *arena.slot(s);
      if (slot.live.load(std::memory_order_acquire) == 0) continue;
      const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
      for (ThreadWord& word : slot.threads) {
        const std::uint64_t seen = word.sequence.load(std::memory_order_seq_cst);
        if ((seen & 1) != 0 && &word != self) busy_.push_back({s, &slot, generation, &word, seen});
      }
    }
  }
  // Who knows better than device memory, which anyone may have written to, drops the slots in which
  // nobody can be: is_empty(slot).
  template <class IsEmpty>
  void skip(IsEmpty&& is_empty) {
    std::erase_if(busy_, [&](const Busy& b) { return is_empty(b.number); });
  }
  bool done() {
    std::erase_if(busy_, [](const Busy& b) {
      return b.word->sequence.load(std::memory_order_acquire) != b.seen ||
             b.slot->generation.load(std::memory_order_acquire) != b.generation;
    });
    return busy_.empty();
  }

 private:
  struct Busy {
    std::uint32_t number;
    ProcessSlot* slot;
    std::uint32_t generation;
    ThreadWord* word;
    std::uint64_t seen;
  };
  std::vector<Busy> busy_;
};

}  // namespace ib::hca
