// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses and TCP sockets of this folder's programs.
#pragma once

#include "program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace ib::bench {

inline sockaddr_in address_of(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  require(::inet_pton(AF_INET, host, &address.sin_addr) == 1, "the address");
  return address;
}

inline int make_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  require(fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0, "socket");
  return fd;
}

}  // namespace ib::bench
