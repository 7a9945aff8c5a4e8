// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LateEvents: moves completion events of this process's queues that did not fit into the pipe of
// their channel (hca/queues/late_events.h) into it.
//
// Thread safe.
#pragma once

#include "hca/layout/arena.h"
#include "user/peer_files.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ib::user {

class LateEvents {
 public:
  // `slot`: of this process.
  LateEvents(const hca::Arena& arena, std::uint32_t slot, PeerFiles& files)
      : arena_(arena), slot_(slot), files_(files) {}

  // Completion queues of this process.
  void add(std::uint32_t cq);
  void remove(std::uint32_t cq);

  // Whether there may be some.
  bool any() const {
    const hca::ProcessSlot* const own = arena_.slot(slot_);
    return own != nullptr && own->late_events.load(std::memory_order_seq_cst) != 0;
  }
  // After each read from a channel, and when the doorbell has rung. Returns false if it has to be
  // called again. Cheap if there are none.
  bool move();

 private:
  hca::Arena arena_;
  std::uint32_t slot_;
  PeerFiles& files_;
  std::mutex lock_;
  std::vector<std::uint32_t> cqs_;
};

}  // namespace ib::user
