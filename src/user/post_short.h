// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting a plain request, inline (hca/requester_short.h).
#pragma once

#include "hca/requester_short.h"
#include "user/queue_pair.h"

namespace ib::user {

template <class Send>
[[gnu::always_inline]] inline bool QueuePair::post_short(Send send) {
  if (!requester_) return false;
  requester_->announce();
  const hca::OpScope scope(plane_);
  return requester_->post_short(send);
}

}  // namespace ib::user
