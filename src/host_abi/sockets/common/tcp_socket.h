// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets of the kernel, and their names.
#pragma once

#include "host_abi/sockets/common/ranges.h"

#include <sys/socket.h>

#include <cstdint>

namespace ib::host_abi::sockets {

// An option that is a number; -1: there is none.
int option(int fd, int level, int name);
bool is_tcp(int fd);

struct Name {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};
Name make_name(const Endpoint& endpoint, bool as_ipv6, std::uint32_t scope = 0);
// The results of getsockname() and getpeername(); length 0: there is none.
Name local_name(int fd);
Name remote_name(int fd);
Endpoint local_endpoint(int fd);

}  // namespace ib::host_abi::sockets
