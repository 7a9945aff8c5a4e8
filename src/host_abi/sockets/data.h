// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes over a connection of the switch, with the results and errors of TCP.
#pragma once

#include "host_abi/sockets/table.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::sockets {

// As recv() and send(). `fd` has the time limits.
ssize_t receive(int fd, Socket& socket, void* buffer, std::size_t length, int flags);
ssize_t transmit(int fd, Socket& socket, const void* buffer, std::size_t length, int flags);
enum class SetAside : std::uint8_t {
  Some,
  NoneYet,
  Never,  // another thread reads it, there are enough, or no more come
};
// Reads ahead of the program (aside.h): for a thread that waits until it can write.
SetAside set_aside(Socket& socket);
// Bytes that can be read at once, of `most` that are counted.
std::size_t waiting_bytes(Socket& socket);

}  // namespace ib::host_abi::sockets
