// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The streams of stdio over connections (stdio_calls.cpp).
#pragma once

namespace ib::host_abi::sockets {

// The library's own: the switch moves the bytes of `fd`.
bool is_connection(int fd);

// The process ends: writes what they still have. libc would do so too late, after the goodbyes to
// the peers.
void flush_streams();
void release_lock_of_streams();

// `fd`, one of 0, 1 and 2, is about to become a connection: stdin, stdout or stderr is written out.
void flush_standard_stream(int fd);
// It has become one: the stream is one over the connection from now on.
void replace_standard_stream(int fd);

}  // namespace ib::host_abi::sockets
