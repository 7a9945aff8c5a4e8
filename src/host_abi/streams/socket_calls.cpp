// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that make connections, and those about their options and names.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/sockets/common/tcp_socket.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/options.h"
#include "host_abi/streams/own_link.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

int failed(int error) {
  errno = error;
  return -1;
}

Ref stream_of(int fd) {
  if (!is_in_table(fd) || Inside::is()) return {};
  return find_stream(fd);
}

int accept_with(int fd, sockaddr* address, socklen_t* length, int flags) {
  tell_of_listeners();
  const socklen_t room = length != nullptr ? *length : 0;
  const int result = real::accept4(fd, address, length, flags);
  if (result >= 0) {
    about_to_close(result);  // whatever had the number before was closed by system call
    accepted(result, flags, address, length, room);
  }
  return result;
}

int get_option(int fd, int level, int name, void* value, socklen_t* length,
               real::Real<int(int, int, int, void*, socklen_t*)>& from) {
  const Ref stream = stream_of(fd);
  if (!stream || kernel_has(level, name)) return from(fd, level, name, value, length);
  streams::End* const end = end_of(*stream);
  if (end == nullptr) return failed(ENOTCONN);
  return get_option(fd, *stream, *end, level, name, value, length);
}

// An option that a TCP socket does not get. A listener that defers accept() waits for bytes that
// come by TCP, and those of a stream do not.
bool is_without_effect(int fd, int level, int name) {
  return level == IPPROTO_TCP && name == TCP_DEFER_ACCEPT && is_on() && sockets::is_tcp(fd);
}

int set_option(int fd, int level, int name, const void* value, socklen_t length,
               real::Real<int(int, int, int, const void*, socklen_t)>& to) {
  const Ref stream = stream_of(fd);
  if (!stream && is_without_effect(fd, level, name) && length >= sizeof(int)) return 0;
  if (!stream || kernel_has(level, name)) return to(fd, level, name, value, length);
  streams::End* const end = end_of(*stream);
  if (end == nullptr) return failed(ENOTCONN);
  return set_option(fd, *stream, *end, level, name, value, length);
}

bool is_about_bytes(unsigned long request) {
  return request == FIONREAD || request == SIOCOUTQ || request == SIOCATMARK;
}

int control(int fd, unsigned long request, void* argument,
            real::Real<int(int, unsigned long, ...)>& real) {
  if (!is_about_bytes(request)) return real(fd, request, argument);
  const Ref stream = stream_of(fd);
  if (!stream) return real(fd, request, argument);
  streams::End* const end = end_of(*stream);
  if (end == nullptr) return failed(ENOTCONN);
  std::uint64_t count = 0;
  {
    const Inside inside;
    OwnLink link(fd);
    if (request == FIONREAD) {
      count = end->readable_bytes(link);
    } else if (request == SIOCOUTQ) {
      count = end->unsent_bytes();
    } else {
      count = end->is_at_mark(link) ? 1 : 0;
    }
  }
  const int result = static_cast<int>(std::min<std::uint64_t>(count, INT_MAX));
  std::memcpy(argument, &result, sizeof result);
  return 0;
}

std::uint8_t tcp_state(int fd, streams::End& end) {
  const Inside inside;
  OwnLink link(fd);
  return end.tcp_state(link);
}

bool shut_down(int fd, streams::End& end, int how) {
  const Inside inside;
  OwnLink link(fd);
  return end.shut_down(link, how);
}

int give_name(int fd, Socket& stream, bool peer, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) return failed(EFAULT);
  streams::End* const end = end_of(stream);
  if (end == nullptr) return failed(ENOTCONN);
  if (peer) {
    // As TCP: a connection that is over has no peer any more.
    constexpr std::uint8_t kClosed = 7;
    if (tcp_state(fd, *end) == kClosed) return failed(ENOTCONN);
  }
  return name_of(*end, stream, peer, address, length);
}

}  // namespace

extern "C" {

int streams_listen(int fd, int backlog) IB_STANDS_FOR("listen");
int streams_listen(int fd, int backlog) {
  if (!is_on() || Inside::is()) return real::listen(fd, backlog);
  const int before = errno;
  const bool is_new = listens(fd);  // first: a client may come as soon as the kernel listens
  errno = before;
  const int result = real::listen(fd, backlog);
  const int error = errno;
  if (result == 0) {
    forget_epoll_records(fd);
    listens(fd);  // it has a port now
  } else if (is_new) {
    about_to_close(fd);
  }
  errno = error;
  return result;
}

int streams_accept4(int fd, sockaddr* address, socklen_t* length, int flags)
    IB_STANDS_FOR("accept4");
int streams_accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  return accept_with(fd, address, length, flags);
}

int streams_accept(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("accept");
int streams_accept(int fd, sockaddr* address, socklen_t* length) {
  return accept_with(fd, address, length, 0);
}

int streams_connect(int fd, const sockaddr* address, socklen_t length) IB_STANDS_FOR("connect");
int streams_connect(int fd, const sockaddr* address, socklen_t length) {
  if (stream_of(fd)) {
    return failed(address != nullptr && address->sa_family == AF_UNSPEC ? EOPNOTSUPP : EISCONN);
  }
  int result = 0;
  if (connects(fd, address, length, result)) return result;
  return real::connect(fd, address, length);
}

int streams_shutdown(int fd, int how) IB_STANDS_FOR("shutdown");
int streams_shutdown(int fd, int how) {
  const Ref stream = stream_of(fd);
  if (!stream) return real::shutdown(fd, how);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return failed(EINVAL);
  streams::End* const end = end_of(*stream);
  if (end == nullptr) return failed(ENOTCONN);
  if (!shut_down(fd, *end, how)) return failed(ENOTCONN);
  if (how != SHUT_WR) static_cast<void>(real::shutdown(fd, SHUT_RD));
  return 0;
}

int streams_getsockname(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("getsockname");
int streams_getsockname(int fd, sockaddr* address, socklen_t* length) {
  if (const Ref stream = stream_of(fd)) return give_name(fd, *stream, false, address, length);
  return real::getsockname(fd, address, length);
}

int streams_getpeername(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("getpeername");
int streams_getpeername(int fd, sockaddr* address, socklen_t* length) {
  if (const Ref stream = stream_of(fd)) return give_name(fd, *stream, true, address, length);
  return real::getpeername(fd, address, length);
}

int streams_getsockopt(int fd, int level, int name, void* value, socklen_t* length)
    IB_STANDS_FOR("getsockopt");
int streams_getsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  return get_option(fd, level, name, value, length, real::getsockopt);
}

int streams_setsockopt(int fd, int level, int name, const void* value, socklen_t length)
    IB_STANDS_FOR("setsockopt");
int streams_setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  return set_option(fd, level, name, value, length, real::setsockopt);
}

int streams_ioctl(int fd, unsigned long request, ...) IB_STANDS_FOR("ioctl");
int streams_ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, request, argument, real::ioctl);
}

#if __TIMESIZE == 32
int streams_getsockopt64(int fd, int level, int name, void* value, socklen_t* length)
    IB_STANDS_FOR("__getsockopt64");
int streams_getsockopt64(int fd, int level, int name, void* value, socklen_t* length) {
  return get_option(fd, level, name, value, length, real::getsockopt64);
}

int streams_setsockopt64(int fd, int level, int name, const void* value, socklen_t length)
    IB_STANDS_FOR("__setsockopt64");
int streams_setsockopt64(int fd, int level, int name, const void* value, socklen_t length) {
  return set_option(fd, level, name, value, length, real::setsockopt64);
}

int streams_ioctl_time64(int fd, unsigned long request, ...) IB_STANDS_FOR("__ioctl_time64");
int streams_ioctl_time64(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, request, argument, real::ioctl_time64);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::stream_switch

namespace ib::host_abi::sockets {

bool is_connection(int fd) {
  return static_cast<bool>(stream_switch::stream_of(fd));
}

}  // namespace ib::host_abi::sockets
