// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SendQueue: the requests of a queue pair from their posting to their completion [IBA1 10.8]. It
// counts them, keeps those that have to wait with their data, and completes them; what they do is
// not its matter.
//
// Positions posted - waiting .. posted - 1 wait. The slot of a waiting request holds a copy of it
// with its SGEs or inline data.
//
// Thread rule: that of Requester, but for polled() and queued(): any thread, one at a time.
#pragma once

#include "hca/memory/memory_plane.h"
#include "hca/queues/cq_producer.h"
#include "hca/requester/message_count.h"
#include "hca/requester/send_wqe.h"
#include "hca/requester/stored_requests.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace ib::hca {

class SendQueue {
 public:
  SendQueue(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own);

  // Whether this request is one for this queue, and there is room.
  Status check(const SendWqe& wqe) const;
  bool is_full() const { return queued() >= config_.max_wr; }
  std::uint32_t queued() const {
    return static_cast<std::uint32_t>(posted_.load(std::memory_order_relaxed) -
                                      freed_.load(std::memory_order_acquire));
  }
  // Room for one more is known. Gives its position.
  [[gnu::always_inline]] std::uint64_t append(std::uint64_t wr_id) {
    const std::uint64_t position = posted_.load(std::memory_order_relaxed);
    wr_ids_[position & mask_] = wr_id;
    posted_.store(position + 1, std::memory_order_release);
    return position;
  }
  // A completion for the request at `position` was polled: its slot and all before it are free.
  // Gives the request's wr_id; false if no such request is outstanding.
  bool polled(std::uint32_t position, std::uint64_t& wr_id) {
    const std::uint64_t freed = freed_.load(std::memory_order_relaxed);
    const std::uint64_t full = freed + (position - static_cast<std::uint32_t>(freed));
    if (full >= posted_.load(std::memory_order_acquire)) return false;
    wr_id = wr_ids_[full & mask_];
    freed_.store(full + 1, std::memory_order_release);
    return true;
  }

  bool waiting() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // The newest request, at `position`, has to wait.
  void keep(const SendWqe& wqe, std::uint64_t position) {
    stored_.store(wqe, position);
    ++waiting_;
  }
  // The oldest that waits; there is one.
  std::uint64_t head() const { return posted_.load(std::memory_order_relaxed) - waiting_; }
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

  // --- the fast path (requester_fast.h) ---

  // Refreshes the common part of its completions. There is a completion queue.
  void refresh();
  bool look_again() { return cq_.look_again(plane_.arena()); }
  // Completes the request at `position` with success. Returns false if finish_fast() has to.
  [[gnu::always_inline]] bool complete_fast(std::uint32_t flags, std::uint64_t position,
                                            std::uint32_t bytes, verbs::WcOpcode opcode) {
    if (!config_.signal_all && (flags & verbs::send_flag::kSignaled) == 0) return true;
    return completes_plain_ && cq_.push_fast(plane_.slot(), nullptr, [&](Cqe& slot) {
      write_sent(slot, position, bytes, opcode);
    });
  }
  // The same for the newest request, whatever its queue is like.
  void finish_fast(std::uint32_t flags, std::uint32_t bytes, verbs::WcOpcode opcode) noexcept;
  [[gnu::always_inline]] void count(std::uint64_t bytes) { count_message(own_.requester, bytes); }

 private:
  [[gnu::always_inline]] void write_sent(Cqe& slot, std::uint64_t position, std::uint32_t bytes,
                                         verbs::WcOpcode opcode) const {
    sent_.write(slot);
    slot.wqe = static_cast<std::uint32_t>(position);
    slot.byte_len = bytes;
    slot.opcode = static_cast<std::uint32_t>(opcode);
  }
  void refused();
  std::uint64_t now() const;

  MemoryPlane& plane_;
  QpEntry& own_;
  RequesterConfig config_;
  CqProducer cq_;
  CompletionHead sent_;           // the common part of its successful completions
  bool completes_plain_ = false;  // they are sent_ and no more; by refresh()
  bool completed_ = false;        // the head, ahead of its delivery
  std::uint32_t mask_;
  std::atomic<std::uint32_t> waiting_{0};  // others may call waiting() without the lock
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> freed_{0};
  std::vector<std::uint64_t> wr_ids_;
  StoredRequests stored_;
};

}  // namespace ib::hca
