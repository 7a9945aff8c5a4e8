// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Late events: completion events that the pipe of their channel had no room for. A program may
// leave any number of events unread, and each costs the same, as with Linux. So the queue counts
// those that did not fit (CqEntry::arm.late), and they follow into the pipe, in any order among
// queues, when there is room.
//
// A poster that counts an event there has seen the pipe hold something to read afterwards. So there
// will be a read, and the owner of the queue looks for late events after each of its reads
// (user/background/late_events.h). If a poster cannot look at the pipe, it rings the owner's
// doorbell instead.
//
// Any thread. A pipe has `Written write()`, which sends one event of the queue, and `bool
// holds_some()`: whether it holds something to read.
#pragma once

#include "hca/layout/layout.h"

#include <atomic>
#include <cstdint>

namespace ib::hca {

enum class Written : std::uint32_t {
  Yes,
  Full,
  Gone,    // nobody will ever read it
  NotNow,  // this process has no descriptor for it
};

// Counts one event of a queue; its owner has the slot.
inline void add_late_event(CqEntry& cq, ProcessSlot& owner) {
  cq.arm.late.fetch_add(1, std::memory_order_seq_cst);
  owner.late_events.store(1, std::memory_order_seq_cst);
  // Before the look at the pipe, which the owner reads before its look at this. The kernel's lock
  // of the pipe orders the two, but not what comes before it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

inline bool has_late_events(const CqEntry& cq) {
  return cq.arm.late.load(std::memory_order_seq_cst) != 0;
}

inline bool take_late_event(CqEntry& cq) {
  std::uint32_t late = cq.arm.late.load(std::memory_order_seq_cst);
  while (late != 0) {
    if (cq.arm.late.compare_exchange_weak(late, late - 1, std::memory_order_seq_cst)) return true;
  }
  return false;
}

// Moves late events into the pipe, as many as it has room for. Returns false if that has to be
// tried again.
template <class Pipe>
bool move_late_events(CqEntry& cq, ProcessSlot& owner, Pipe&& pipe) {
  constexpr std::uint32_t kMost = 1u << 17;  // as many as the largest pipe of a user holds
  for (std::uint32_t moved = 0; moved < kMost; ++moved) {
    if (!take_late_event(cq)) return true;
    switch (pipe.write()) {
      case Written::Yes: break;
      case Written::Gone: cq.arm.late.store(0, std::memory_order_relaxed); return true;
      case Written::NotNow: add_late_event(cq, owner); return false;
      case Written::Full:
        add_late_event(cq, owner);
        // Unless all of it has been read meanwhile.
        if (pipe.holds_some()) return true;
        break;
    }
  }
  owner.late_events.store(1, std::memory_order_seq_cst);
  return false;
}

// Sends one event of a queue. Returns false if the owner has to be kicked.
template <class Pipe>
bool send_event(CqEntry& cq, ProcessSlot& owner, Pipe&& pipe) {
  const Written written = has_late_events(cq) ? Written::Full : pipe.write();
  if (written == Written::Yes || written == Written::Gone) return true;
  add_late_event(cq, owner);
  if (written == Written::NotNow) return false;
  return pipe.holds_some() || move_late_events(cq, owner, pipe);
}

}  // namespace ib::hca
