// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// bind() and connect(): a TCP connection to a node of this fabric reaches no server of another
// fabric. It is refused, as on a host where nobody listens. Localhost is the machine's.
#include "host_abi/preload/names/port_marks.h"
#include "host_abi/preload/own_descriptors.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/descriptor_table.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

constinit Real<int(int, const sockaddr*, socklen_t)> real_bind{"bind"};
constinit Real<int(int, const sockaddr*, socklen_t)> real_connect{"connect"};

// The ports that this process has marked. A program that has more of them goes without.
constexpr std::size_t kMostMarks = 64;
constinit std::atomic<std::uint16_t> marked[kMostMarks];

struct Endpoint {
  bool is_ip = false;
  std::uint32_t ipv4 = 0;  // 0: any, or an address of IPv6
  bool is_any = false;
  std::uint16_t port = 0;
};

Endpoint endpoint_of(const sockaddr* address, socklen_t length) {
  Endpoint endpoint;
  if (address == nullptr || length < sizeof(sockaddr_in)) return endpoint;
  if (address->sa_family == AF_INET) {
    sockaddr_in ip;
    std::memcpy(&ip, address, sizeof ip);
    endpoint.ipv4 = ntohl(ip.sin_addr.s_addr);
    endpoint.port = ntohs(ip.sin_port);
    endpoint.is_any = endpoint.ipv4 == 0;
    endpoint.is_ip = true;
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 ip;
    std::memcpy(&ip, address, sizeof ip);
    if (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr)) {
      std::memcpy(&endpoint.ipv4, ip.sin6_addr.s6_addr + 12, sizeof endpoint.ipv4);
      endpoint.ipv4 = ntohl(endpoint.ipv4);
    }
    endpoint.port = ntohs(ip.sin6_port);
    endpoint.is_any = IN6_IS_ADDR_UNSPECIFIED(&ip.sin6_addr) != 0;
    endpoint.is_ip = true;
  }
  return endpoint;
}

// Default addresses of nodes are in 127.0.0.0/8, those of localhost in 127.0.0.0/16.
bool may_be_node(const Endpoint& endpoint) {
  return endpoint.ipv4 >> 24 == 127 && endpoint.ipv4 >> 16 != 127 << 8;
}

bool is_tcp(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return sys::get_option(fd, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

// Returns true once for each port.
bool is_new(std::uint16_t port) {
  for (auto& entry : marked) {
    std::uint16_t none = 0;
    if (entry.compare_exchange_strong(none, port)) return true;
    if (none == port) return false;
  }
  return false;
}

void mark(std::uint16_t port) {
  const std::uint64_t fabric = remote::fabric_word();
  if (fabric == 0 || !is_new(port)) return;
  char name[kMarkSize];
  const std::size_t length = write_mark(port, fabric, sys::process_id(), name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(kMarkSize < sizeof address.sun_path);
  std::memcpy(address.sun_path + 1, name, length);  // an abstract address begins with 0
  const int fd = sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
  if (fd < 0) return;
  const int high = os::duplicate_high(fd);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  const bool bound =
      high >= 0 && sys::bind(high, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  sys::close(fd);
  if (bound) {
    own::protect_in_children(high);  // which have the server's sockets too
  } else if (high >= 0) {
    sys::close(high);
  }
}

// Without /proc nothing is refused.
bool is_of_other_fabric(std::uint16_t port) {
  const std::uint64_t fabric = remote::fabric_word();
  if (fabric == 0) return false;
  const int file = sys::open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  MarkSearch search(port, fabric);
  char part[2048];
  for (;;) {
    const ssize_t got = sys::read(file, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    search.read(part, static_cast<std::size_t>(got));
  }
  sys::close(file);
  return search.found_other() && !search.found_own();
}

}  // namespace

extern "C" {

int preload_bind(int fd, const sockaddr* address, socklen_t length) IB_STANDS_FOR("bind");
int preload_bind(int fd, const sockaddr* address, socklen_t length) {
  const int result = real_bind(fd, address, length);
  if (result != 0) return result;
  const Endpoint endpoint = endpoint_of(address, length);
  if (!endpoint.is_ip || endpoint.port == 0) return result;
  const sys::KeepErrno keep;
  if ((endpoint.is_any || may_be_node(endpoint)) && is_tcp(fd)) mark(endpoint.port);
  return result;
}

int preload_connect(int fd, const sockaddr* address, socklen_t length) IB_STANDS_FOR("connect");
int preload_connect(int fd, const sockaddr* address, socklen_t length) {
  const Endpoint endpoint = endpoint_of(address, length);
  if (may_be_node(endpoint)) {
    const int before = errno;
    const bool is_refused = is_tcp(fd) && is_of_other_fabric(endpoint.port);
    errno = is_refused ? ECONNREFUSED : before;
    if (is_refused) return -1;
  }
  return real_connect(fd, address, length);
}

}  // extern "C"

}  // namespace ib::host_abi::preload
