// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OwnSharedQueue: the owner's end of a shared receive queue [IBA1 10.2.9]. The same for programs
// (user/queue_pair.h) and kernel clients (al/verbs.h).
//
// Thread rule: one thread at a time; its owner has the lock, if one is needed. serve_awaited(): any
// thread.
#pragma once

#include "hca/queues/receive_ring.h"
#include "verbs/control.h"

#include <cstdint>
#include <memory>

namespace ib::hca {

class OwnSharedQueue {
 public:
  // Opens a queue that softibd has just made. Returns false if its attributes are impossible.
  bool open(MemoryPlane& plane, std::uint32_t index, const verbs::control::SrqOut& made) {
    close();
    SrqEntry* entry = plane.arena().srq(index);
    if (entry == nullptr) return false;
    plane_ = &plane;
    entry_ = entry;
    receives_ = SharedReceives::create(
        plane.arena(), {made.ring, made.slots, made.stride, made.max_wr, made.max_sge},
        entry->producer.tail);
    return receives_ != nullptr;
  }
  void close() { *this = OwnSharedQueue(); }

  SharedReceives* receives() const { return receives_.get(); }
  // After a receive was posted: wakes a requester that found none and waits for it.
  void serve_awaited() {
    if (entry_->event.rnr_waiter.load(std::memory_order_relaxed) == 0) return;
    const std::uint32_t waiter = entry_->event.rnr_waiter.exchange(0, std::memory_order_acq_rel);
    if (waiter != 0) plane_->host().kick(waiter - 1);
  }

 private:
  MemoryPlane* plane_ = nullptr;
  SrqEntry* entry_ = nullptr;
  std::unique_ptr<SharedReceives> receives_;
};

}  // namespace ib::hca
