// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting a plain request, inline (hca/requester/requester_fast.h).
#pragma once

#include "hca/requester/requester_fast.h"
#include "user/queue_pair.h"

namespace ib::user {

template <class Send>
[[gnu::always_inline]] inline bool QueuePair::post_fast(Send send) {
  hca::Requester* const sends = own_.fast_sends();
  if (sends == nullptr) return false;
  const hca::OpScope scope(own_.plane(), own_.executing());
  const auto posted = sends->post_fast(send);
  if (posted == hca::Requester::Posted::Rest) [[unlikely]]
    sends->finish_fast(send.opcode(), send.flags(), send.sge().length);
  return posted != hca::Requester::Posted::No;
}

template <class Send>
inline bool QueuePair::refresh_and_post(Send send) {
  hca::Requester* const sends = own_.fast_sends();
  if (sends == nullptr) return false;
  const hca::OpScope scope(own_.plane(), own_.executing());
  return sends->refresh_and_post(send);
}

}  // namespace ib::user
