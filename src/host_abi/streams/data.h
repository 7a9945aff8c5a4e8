// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes over a stream, with the results and errors of TCP.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace ib::host_abi::stream_switch {

// As recvmsg() and sendmsg() with these flags. They may wait (waiting.h).
ssize_t receive(int fd, Socket& stream, const iovec* parts, std::size_t count, int flags);
ssize_t transmit(int fd, Socket& stream, const iovec* parts, std::size_t count, int flags);
ssize_t receive(int fd, Socket& stream, void* buffer, std::size_t length, int flags);
ssize_t transmit(int fd, Socket& stream, const void* buffer, std::size_t length, int flags);

}  // namespace ib::host_abi::stream_switch
