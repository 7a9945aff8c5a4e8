// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NextLines: the lines of memory that the next request of a queue pair probably writes first, and
// that another core polls. Any thread.
//
// A prefetch is to come about as long before the request as it takes, 100 cycles: a line that comes
// earlier is polled away again.
#pragma once

#include "hca/memory/copy.h"

#include <atomic>

namespace ib::hca {

class NextLines {
 public:
  void expect(const void* line) { line_.store(line, std::memory_order_relaxed); }
  // Of the buffer that the next send of inline pieces into an SRQ probably writes.
  void expect_room(const void* room) { room_.store(room, std::memory_order_relaxed); }
  void prefetch() const { prefetch_for_write(line_.load(std::memory_order_relaxed)); }
  void prefetch_room() const { prefetch_for_write(room_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<const void*> line_{this};  // nobody follows them
  std::atomic<const void*> room_{this};
};

}  // namespace ib::hca
