// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polling, inline: a completion goes from device memory to where its reader wants it, and is
// nowhere in between.
#pragma once

#include "user/process_state.h"

namespace ib::user {

// `fill` gets the completion as it lies in shared memory, and must read each field once, but for
// those in TakenCompletion, which have been read.
template <class Fill>
[[gnu::always_inline]] inline bool CompletionQueue::take_into(Fill&& fill) {
  process_.attend();
  for (;;) {
    const hca::Cqe& slot = ring_[consumed_ & mask_];
    const auto expected = static_cast<std::uint32_t>(consumed_ >> log_slots_) + 1;
    if (slot.seq.load(std::memory_order_acquire) != expected) {
      found_nothing();
      return false;
    }
    empty_polls_ = 0;
    TakenCompletion taken{0, slot.qpn, static_cast<verbs::WcStatus>(slot.status),
                          (slot.bits & hca::cqe_bit::kReceive) != 0};
    const bool valid = identify(slot, taken, taken.wr_id);
    if (valid) [[likely]]
      fill(slot, taken);
    ++consumed_;
    entry_->consumer.consumer.store(consumed_, std::memory_order_release);
    if (valid) [[likely]]
      return true;
  }
}

[[gnu::always_inline]] inline bool CompletionQueue::identify(const hca::Cqe& cqe,
                                                             const TakenCompletion& taken,
                                                             std::uint64_t& wr_id) {
  if (taken.qpn == 0) [[unlikely]]
    return false;
  QueuePair* qp = last_qp_;
  if (taken.qpn != last_qpn_) [[unlikely]]
    qp = look_up(taken.qpn);
  if (taken.received) return identify_receive(cqe, qp, taken.status, wr_id);
  if (qp == nullptr || !qp->requester_) [[unlikely]]
    return false;
  return qp->requester_->polled(cqe.wqe, wr_id);
}

[[gnu::always_inline]] inline bool CompletionQueue::identify_receive(const hca::Cqe& cqe,
                                                                     QueuePair* qp,
                                                                     verbs::WcStatus status,
                                                                     std::uint64_t& wr_id) {
  if (cqe.srq != hca::kNone) {
    std::uint64_t found = 0;  // has an address; `wr_id` must not need one
    const bool valid = identify_shared(cqe, status, found);
    wr_id = found;
    return valid;
  }
  if (qp == nullptr || !qp->rq_) [[unlikely]]
    return false;
  const std::uint32_t id = cqe.wqe;
  if (cqe.inline_length != 0 && status == verbs::WcStatus::Success) scatter_own(cqe, *qp, id);
  return qp->rq_->finish(id, wr_id);
}

}  // namespace ib::user
