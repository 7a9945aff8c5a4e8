// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The streams of stdio over connections (stdio_calls.cpp).
#pragma once

namespace ib::host_abi::sockets {

// The process ends: writes what they still have. libc would do so too late, after the goodbyes to
// the peers.
void flush_streams();
void release_lock_of_streams();

}  // namespace ib::host_abi::sockets
