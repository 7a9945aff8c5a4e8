// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/common/tcp_socket.h"

#include "host_abi/sockets/common/real_calls.h"

#include <netinet/in.h>

#include <cstring>

namespace ib::host_abi::sockets {

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return real::getsockopt(fd, level, name, static_cast<void*>(&value), &length) == 0 ? value : -1;
}

bool is_tcp(int fd) {
  if (option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM) return false;
  const int family = option(fd, SOL_SOCKET, SO_DOMAIN);
  if (family != AF_INET && family != AF_INET6) return false;
  return option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

Name make_name(const Endpoint& endpoint, bool as_ipv6, std::uint32_t scope) {
  Name name;
  if (!as_ipv6) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(endpoint.port);
    std::memcpy(&four.sin_addr, &endpoint.address[12], sizeof four.sin_addr);
    std::memcpy(&name.storage, &four, name.length = sizeof four);
  } else {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(endpoint.port);
    six.sin6_scope_id = scope;
    std::memcpy(&six.sin6_addr, endpoint.address.data(), endpoint.address.size());
    std::memcpy(&name.storage, &six, name.length = sizeof six);
  }
  return name;
}

Name local_name(int fd) {
  Name name;
  name.length = sizeof name.storage;
  if (real::getsockname(fd, name.get(), &name.length) != 0) name.length = 0;
  return name;
}

Name remote_name(int fd) {
  Name name;
  name.length = sizeof name.storage;
  if (real::getpeername(fd, name.get(), &name.length) != 0) name.length = 0;
  return name;
}

Endpoint local_endpoint(int fd) {
  Name name = local_name(fd);
  return endpoint_of(name.get(), name.length);
}

}  // namespace ib::host_abi::sockets
