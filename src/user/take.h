// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polling, inline: a completion goes from device memory to where its reader wants it, and is
// nowhere in between.
//
// take_plain() makes no calls: what it needs stays in registers, and nothing is saved.
#pragma once

#include "user/process.h"

#include <mutex>

namespace ib::user {

inline TakenCompletion CompletionQueue::head_of(const hca::Cqe& slot) {
  return {0, slot.qpn, static_cast<verbs::WcStatus>(slot.status),
          (slot.bits & hca::cqe_bit::kReceive) != 0};
}

inline bool CompletionQueue::identify(const hca::Cqe& cqe, TakenCompletion& taken,
                                      std::uint64_t& wr_id) {
  if (hca::CqConsumer::is_void(taken.qpn)) return false;
  const std::uint32_t srq = taken.received ? cqe.srq : hca::kNone;
  if (srq != hca::kNone) return identify_shared(cqe, srq, taken.status, wr_id);
  if (taken.qpn != last_.qpn) last_ = look_up(taken.qpn);
  if (!taken.received) return last_.sends != nullptr && last_.sends->polled(cqe.wqe, wr_id);
  return last_.receives != nullptr &&
         hca::finish(process_.plane(), *last_.receives, last_.pd, cqe, taken.status, wr_id);
}

inline bool CompletionQueue::identify_shared(const hca::Cqe& cqe, std::uint32_t index,
                                             verbs::WcStatus& status, std::uint64_t& wr_id) {
  SharedReceiveQueue* srq = process_.objects().find_srq(index);
  if (srq == nullptr) return false;
  const std::lock_guard guard(srq->recv_lock_);
  return hca::finish(process_.plane(), *srq->own_.receives(), srq->pd_, cqe, status, wr_id);
}

// `fill` gets the completion as it lies in shared memory, and must read each field once, but for
// those in TakenCompletion, which have been read.
template <class Fill>
[[gnu::always_inline]] inline bool CompletionQueue::take_into(Fill&& fill) {
  process_.attention().attend();
  for (;;) {
    const hca::Cqe& slot = consumer_.head();
    if (!consumer_.arrived(slot)) {
      found_nothing();
      return false;
    }
    empty_polls_ = 0;
    TakenCompletion taken = head_of(slot);
    const bool valid = identify(slot, taken, taken.wr_id);
    if (valid) fill(slot, taken);
    consumer_.advance();
    if (valid) return true;
  }
}

inline bool CompletionQueue::is_idle() const {
  return !consumer_.arrived(consumer_.head()) && !process_.waiting().any();
}

template <class Fill>
[[gnu::always_inline]] inline CompletionQueue::Take CompletionQueue::take_plain(Fill&& fill) {
  if (process_.attention().is_wanted()) [[unlikely]]
    return Take::Other;
  const hca::Cqe& slot = consumer_.head();
  if (!consumer_.arrived(slot)) {
    if (process_.waiting().any() || empty_polls_ == kPollsPerYield - 1) [[unlikely]]
      return Take::Other;
    ++empty_polls_;
    return Take::Nothing;
  }
  empty_polls_ = 0;
  TakenCompletion taken = head_of(slot);
  if (taken.qpn != last_.qpn) [[unlikely]]
    return Take::Other;
  if (taken.received) {
    hca::OwnReceives* const receives = last_.receives;
    if (receives == nullptr || slot.srq != hca::kNone || slot.inline_length != 0 ||
        !receives->finish(slot.wqe, taken.wr_id)) [[unlikely]] {
      return Take::Other;
    }
  } else {
    hca::Requester* const sends = last_.sends;
    if (sends == nullptr || !sends->polled(slot.wqe, taken.wr_id)) [[unlikely]]
      return Take::Other;
  }
  fill(slot, taken);
  consumer_.advance();
  return Take::Taken;
}

}  // namespace ib::user
