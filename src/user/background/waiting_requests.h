// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WaitingRequests: the queue pairs of this process with work requests that wait, for a receive of
// the peer or for time to pass. They take turns, on the thread that polls or the service thread.
#pragma once

#include "user/spin_lock.h"

#include <atomic>
#include <cstdint>
#include <deque>

namespace ib::user {

class WorkQueues;

class WaitingRequests {
 public:
  // The caller holds the queue pair's send lock, and wakes the service thread.
  void enroll(WorkQueues& queues);
  void withdraw(WorkQueues& queues);

  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // The same for a thread that is about to sleep.
  bool any_now() const { return count_.load(std::memory_order_seq_cst) != 0; }
  // Called when a poll finds nothing: lets waiting requests go on. Cheap if there are none.
  void poll_found_nothing() {
    if (any()) run();
  }
  void run();
  // Of run(), by any thread.
  std::uint32_t runs() const { return runs_.load(std::memory_order_relaxed); }

 private:
  bool give_turns();
  void count();

  SpinLock lock_;
  std::deque<WorkQueues*> waiting_;
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> runs_{0};
};

}  // namespace ib::user
