// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Breaking a queue pair, one's own or a peer's.
#pragma once

#include "hca/memory/memory_plane.h"

#include <optional>

namespace ib::hca {

// Moves it to Error; its owner's library then flushes it. Its owner gets the event unless it was in
// Error already.
void break_queue_pair(MemoryPlane& plane, QpEntry& entry, verbs::control::Cause cause,
                      std::optional<verbs::EventType> event);

}  // namespace ib::hca
