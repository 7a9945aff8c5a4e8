// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Attention: finds out that others have changed objects of this process in device memory (its
// process slot counts it), and flushes queue pairs that they have moved to Error.
#pragma once

#include "hca/layout/layout.h"
#include "user/control_connection.h"
#include "user/object_tables.h"

#include <atomic>
#include <cstdint>

namespace ib::user {

class Attention {
 public:
  Attention(ControlConnection& connection, const ObjectTables& objects)
      : connection_(connection), objects_(objects) {}

  // From now on, changes count that others make after this.
  void begin(const hca::ProcessSlot& slot);

  // Called by every poll: this process needs attention and the application's own thread is at
  // hand, while the service thread may have to wait for a core.
  void attend() {
    if (is_wanted()) look_around();
  }
  bool is_wanted() const {
    return slot_->attention.load(std::memory_order_relaxed) !=
           seen_.load(std::memory_order_relaxed);
  }
  // Handles the changes. Returns false if it is to run again soon: a control call is under way and
  // may be waiting for peers, or posters have not left a queue pair that is to be flushed.
  bool look_around();

  // Flushes the queue pairs in Error. Under the control lock. Returns false if posters have not
  // left all of them.
  bool flush_broken();

  // Queue pairs in Error are to be flushed again: posters had not left yet. The caller wakes the
  // service thread.
  void flush_later() { has_unflushed_.store(true, std::memory_order_seq_cst); }
  bool has_unflushed() const { return has_unflushed_.load(std::memory_order_seq_cst); }

 private:
  ControlConnection& connection_;
  const ObjectTables& objects_;
  const hca::ProcessSlot* slot_ = nullptr;  // this process's
  std::atomic<std::uint32_t> seen_{0};
  std::atomic<bool> has_unflushed_{false};
};

}  // namespace ib::user
