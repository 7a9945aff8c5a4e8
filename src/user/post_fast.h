// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting a plain request, inline (hca/fast_path/fast_path_post.h).
#pragma once

#include "hca/fast_path/fast_path_post.h"
#include "user/work_queues.h"

namespace ib::user {

template <class Send>
[[gnu::always_inline]] inline bool WorkQueues::post_fast(Send send) {
  hca::FastPath* const sends = own_.fast_path();
  if (sends == nullptr) return false;
  const hca::OpScope scope(own_.plane(), own_.executing());
  const auto posted = sends->post(send);
  if (posted == hca::FastPath::Posted::Rest) [[unlikely]]
    sends->finish(send.opcode(), send.flags(), send.sge().length);
  return posted != hca::FastPath::Posted::No;
}

template <class Send>
inline bool WorkQueues::refresh_and_post(Send send) {
  hca::FastPath* const sends = own_.fast_path();
  if (sends == nullptr) return false;
  const hca::OpScope scope(own_.plane(), own_.executing());
  return sends->refresh_and_post(send);
}

}  // namespace ib::user
