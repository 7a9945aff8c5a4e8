// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polling, inline: a completion goes from device memory to where its reader wants it, and is
// nowhere in between.
//
// take_plain() makes no calls: what it needs stays in registers, and nothing is saved.
#pragma once

#include "user/process.h"

namespace ib::user {

inline TakenCompletion CompletionQueue::head_of(const hca::Cqe& slot) {
  return {0, slot.qpn, static_cast<verbs::WcStatus>(slot.status),
          (slot.bits & hca::cqe_bit::kReceive) != 0};
}

// `fill` gets the completion as it lies in shared memory, and must read each field once, but for
// those in TakenCompletion, which have been read.
template <class Fill>
[[gnu::always_inline]] inline bool CompletionQueue::take_into(Fill&& fill) {
  process_.attend();
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

template <class Fill>
[[gnu::always_inline]] inline CompletionQueue::Take CompletionQueue::take_plain(Fill&& fill) {
  if (process_.is_wanted()) [[unlikely]]
    return Take::Other;
  const hca::Cqe& slot = consumer_.head();
  if (!consumer_.arrived(slot)) {
    if (process_.has_waiting() || empty_polls_ == kPollsPerYield - 1) [[unlikely]]
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
