// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The limit of a shared receive queue [IBA1 10.2.9.3]: an event, once, when fewer receives are
// left.
#pragma once

#include "hca/memory/poster_host.h"

namespace ib::hca {

// `head`: as the caller has left it.
inline void raise_if_below_limit(PosterHost& host, SrqEntry& srq, std::uint32_t index,
                                 std::uint32_t generation, std::uint64_t head) {
  const std::uint32_t limit = srq.event.limit.load(std::memory_order_relaxed);
  if (limit == 0) [[likely]]
    return;
  if (srq.producer.tail.load(std::memory_order_relaxed) - head >= limit) return;
  if (srq.event.limit.exchange(0, std::memory_order_acq_rel) == 0) return;  // another poster did
  host.raise(
      {verbs::control::EventObject::Srq, index, generation, verbs::EventType::SrqLimitReached});
}

}  // namespace ib::hca
