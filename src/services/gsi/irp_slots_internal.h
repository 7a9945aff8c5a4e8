// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IrpSlots: queues of one request each. A queue is used again, but never destroyed: the canceller
// of a request may still look at it.
#pragma once

#include "io/irp_queue.h"

#include <memory>
#include <vector>

namespace ib::services {

class IrpSlots {
 public:
  // Returns an empty queue, which the caller puts back.
  io::IrpQueue& take() {
    if (free_.empty()) return *all_.emplace_back(std::make_unique<io::IrpQueue>());
    io::IrpQueue& queue = *free_.back();
    free_.pop_back();
    return queue;
  }
  void put(io::IrpQueue& queue) { free_.push_back(&queue); }

 private:
  std::vector<std::unique_ptr<io::IrpQueue>> all_;
  std::vector<io::IrpQueue*> free_;
};

}  // namespace ib::services
