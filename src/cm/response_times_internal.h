// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a connection waits, by the times that its messages have agreed on [IBA1 12.9.8], within
// the engine's limits.
#pragma once

#include "base/time.h"
#include "cm/engine.h"

namespace ib::cm {

Duration wait_of(const Limits& limits, Duration wanted);
// How long the answer to a message of this side may take, and to one of the other side.
Duration response_time(const Limits& limits, const ConnectionInfo& info);
Duration peer_response_time(const Limits& limits, const ConnectionInfo& info);
// 2 * packet lifetime + ACK delay [IBA1 12.9.8.4]; a REQ's ACK timeout is that sum.
Duration time_wait(const Limits& limits, const ConnectionInfo& info);

}  // namespace ib::cm
