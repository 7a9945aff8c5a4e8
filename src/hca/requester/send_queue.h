// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SendQueue: the requests of a queue pair from their posting to their completion [IBA1 10.8]. It
// counts them, keeps those that have to wait with their data, and completes them; what they do is
// not its matter.
//
// Positions posted - waiting .. posted - 1 wait. The slot of a waiting request holds a copy of it
// with its SGEs or inline data.
//
// Thread rule: that of Requester; posted() has its own.
#pragma once

#include "hca/requester/posted_requests.h"
#include "hca/requester/send_completions.h"
#include "hca/requester/send_wqe.h"
#include "hca/requester/stored_requests.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace ib::hca {

class SendQueue {
 public:
  SendQueue(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own);

  // Whether this request is one for this queue, and there is room.
  Status check(const SendWqe& wqe) const;
  bool is_full() const { return posted_.queued() >= config_.max_wr; }
  PostedRequests& posted() { return posted_; }
  const PostedRequests& posted() const { return posted_; }
  SendCompletions& completions() { return completions_; }

  bool waiting() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // The newest request, at `position`, has to wait.
  void keep(const SendWqe& wqe, std::uint64_t position) {
    stored_.store(wqe, position);
    ++waiting_;
  }
  // The oldest that waits; there is one.
  std::uint64_t head() const { return posted_.end() - waiting_; }
  SendWqe load(std::uint64_t position) const { return stored_.load(position); }
  void drop_head() { --waiting_; }
  void reset();

  // Ends the request at `position`: counts it if it succeeded, and writes its completion if it has
  // one.
  void complete(const SendWqe& wqe, std::uint64_t position, verbs::WcStatus status, Cause cause,
                std::uint32_t bytes);
  // Completes the head, which an unreliable transport sends, as soon as the message has left: see
  // the function. end_of_head(): whether that has happened.
  void complete_before_delivery(const SendWqe& wqe, std::uint32_t bytes);
  bool end_of_head() { return std::exchange(completed_, false); }

 private:
  const Arena& arena_;
  QpEntry& own_;
  RequesterConfig config_;
  SendCompletions completions_;
  bool completed_ = false;                 // the head, ahead of its delivery
  std::atomic<std::uint32_t> waiting_{0};  // others may call waiting() without the lock
  PostedRequests posted_;
  StoredRequests stored_;
};

}  // namespace ib::hca
