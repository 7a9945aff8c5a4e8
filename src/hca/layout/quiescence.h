// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Quiescence: how posters, who read device memory without locks, and those who change
// or reuse it find each other (an RCU of processes).
//
// A thread holds an OpScope (op_scope.h) while it executes a work request: its ThreadWord is odd.
// A process that takes something away first makes it unfindable (state Invalid, qpn 0 ...), then
// waits until every word that was odd, and that may touch objects of the owner, has changed.
// Between the change and the look at the words it
// has all processes pass a barrier (platform/barriers.h), so either a poster sees the change or the
// waiter sees the odd word, and entering an OpScope costs no exchange. Where a process of the
// fabric cannot do that, ArenaHeader::fenced_entries has posters pass barriers of their own.
#pragma once

#include "base/assert.h"
#include "hca/layout/epoch.h"
#include "platform/barriers.h"

#include <utility>
#include <vector>

namespace ib::hca {

// Whether a thread of the process in slot `poster`, whose word is `sequence`, may touch objects of
// the process in slot `owner`. A connected queue pair reaches its own process and that of its
// peer; both stay what they are until their posters have left
// (drivers/soft_hca/objects/qp_modify.cpp). So it is with one that belongs to another process than
// the poster (streams/section.h): its owner waits for that poster before it gives the entry away.
// A poster that finds the entry given away already touches nothing.
inline bool may_touch(const Arena& arena, std::uint32_t poster, std::uint64_t sequence,
                      std::uint32_t owner) {
  if (owner == kAnyOwner || poster == owner) return true;
  const std::uint64_t what = sequence & ~executing::kCount;
  if (what == executing::kOwn) return false;
  const QpEntry* qp = arena.qp(executing::queue_pair_of(sequence));
  if (what == executing::kAnything || qp == nullptr || qp->id.owner_slot == owner) return true;
  const verbs::QpType type = qp->id.type;
  const bool one_peer = type == verbs::QpType::Rc || type == verbs::QpType::Uc;
  const QpEntry* peer = one_peer ? arena.qp(qp_index(qp->connection.dest_qpn)) : nullptr;
  return peer == nullptr || peer->id.owner_slot == owner;
}

// Usage: store the change, construct, poll done() until true (it never goes back to false).
class Quiescence {
 public:
  struct Busy {
    std::uint32_t number;  // of the slot
    ProcessSlot* slot;
    std::uint32_t generation;
    ThreadWord* word;
    std::uint64_t seen;
  };

  // `owner`: the slot of the process whose objects are taken away. `self`: a ThreadWord of the
  // caller's that does not count (it may hold a guard itself).
  Quiescence(const Arena& arena, platform::Barriers& barriers, std::uint32_t owner,
             const ThreadWord* self = nullptr) {
    advance_epoch(arena, owner);
    barriers.processes();
    const std::uint32_t used = arena.header().slots_used.load(std::memory_order_acquire);
    for (std::uint32_t s = 0; s < used && s < kMaxSlots; ++s) {
      ProcessSlot& slot = *arena.slot(s);
      // In the opposite order to softibd's stores when a process has ended: the generation of one
      // that is found living changes when it is buried. The words of the dead stay odd.
      const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
      if (slot.live.load(std::memory_order_acquire) == 0) continue;
      const std::uint32_t words = slot.words_used.load(std::memory_order_acquire);
      for (std::uint32_t w = 0; w < words && w < kThreadsPerSlot; ++w) {
        ThreadWord& word = slot.threads[w];
        const std::uint64_t seen = word.sequence.load(std::memory_order_seq_cst);
        if ((seen & 1) != 0 && &word != self && may_touch(arena, s, seen, owner)) {
          busy_.push_back({s, &slot, generation, &word, seen});
        }
      }
    }
  }
  // Drops the slots that are empty by a better source than device memory, which any process may
  // have written to: is_empty(slot).
  template <class IsEmpty>
  void skip(IsEmpty&& is_empty) {
    std::erase_if(busy_, [&](const Busy& b) { return is_empty(b.number); });
  }
  // Acquire, with the stores of OpScope: all loads and stores of those that have left come before.
  bool done() {
    std::erase_if(busy_, [](const Busy& b) {
      const std::uint64_t now = b.word->sequence.load(std::memory_order_acquire);
      return ((now ^ b.seen) & executing::kCount) != 0 ||
             b.slot->generation.load(std::memory_order_acquire) != b.generation;
    });
    return busy_.empty();
  }
  // The threads that are waited for, as of the last done().
  const std::vector<Busy>& busy() const { return busy_; }

 private:
  std::vector<Busy> busy_;
};

}  // namespace ib::hca
