// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ending the receives of a queue pair in Error with flush completions [IBA1 10.3.1], by its owner.
#pragma once

#include "hca/memory/memory_plane.h"
#include "hca/queues/receive_ring.h"

#include <cstdint>

namespace ib::hca {

// After quiescence, so no poster delivers into the queue any more. In an OpScope, under the lock of
// `ring`, which is null if the receives come from a shared queue; then `srq` is that queue, and the
// receive that was taken from it for a message in progress is ended.
void flush_receives(MemoryPlane& plane, QpEntry& entry, std::uint32_t qpn, const OwnReceives* ring,
                    std::uint32_t srq);

}  // namespace ib::hca
