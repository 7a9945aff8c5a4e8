// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clock, and short waits for another thread. Also in the preload library, which has nothing but
// libc.
#pragma once

#include "base/time.h"

#include <cstdint>

namespace ib::os {

Instant monotonic_now();
// Passes the core on for a moment. Returns false at once while a yield would last long, since
// programs that compute want the core (platform/yield_gauge.h); the caller should sleep then.
bool yield_core();
// As ClientHost::relax().
void relax_thread(std::uint32_t round);

}  // namespace ib::os
