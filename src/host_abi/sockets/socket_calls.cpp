// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that make connections, and those about their options and names.
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/time64.h"
#include "host_abi/sockets/data.h"
#include "host_abi/sockets/held.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/wait.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

int failed(int error) {
  errno = error;
  return -1;
}

int accept_with(int fd, sockaddr* address, socklen_t* length, int flags) {
  const Held socket(test_cancel(fd));
  if (!socket || socket->state.load() != State::Listening) {
    return real::accept4(fd, address, length, flags);
  }
  timeval limit{};
  socklen_t size = sizeof limit;
  static_cast<void>(
      real::getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, static_cast<void*>(&limit), &size));
  const timespec time{limit.tv_sec, limit.tv_usec * 1000};
  const bool limited = limit.tv_sec != 0 || limit.tv_usec != 0;
  const Deadline deadline(limited ? &time : nullptr);
  while (true) {
    const std::uint32_t news = count_of_news();
    end_if_cancelled();
    const int accepted = accept_now(fd, *socket, address, length, flags);
    if (accepted >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return accepted;
    if (socket->nonblocking.load() || deadline.is_over()) return failed(EAGAIN);
    pollfd waits[2] = {{fd, POLLIN, 0}, {socket->rs.load(), POLLIN, 0}};
    const nfds_t count = waits[1].fd >= 0 ? 2 : 1;
    if (sleep_in_rpoll(waits, count, deadline, nullptr, news) < 0) return -1;
  }
}

// The state that TCP_INFO begins with.
constexpr std::uint8_t kEstablished = 1;

int get_option(int fd, int level, int name, void* value, socklen_t* length,
               real::Real<int(int, int, int, void*, socklen_t*)>& from) {
  const Held socket(fd);
  if (socket && level == SOL_SOCKET && name == SO_ERROR && *length >= sizeof(int)) {
    const State state = socket->state.load();
    const int error = socket->error.exchange(0);
    if (state == State::Connected || state == State::Connecting || error != 0) {
      std::memcpy(value, &error, sizeof error);
      *length = sizeof error;
      return 0;
    }
  }
  const int result = from(fd, level, name, value, length);
  if (socket && socket->state.load() == State::Connected && level == IPPROTO_TCP &&
      name == TCP_INFO && result == 0 && *length > 0) {
    std::memcpy(value, &kEstablished, sizeof kEstablished);
  }
  return result;
}

int set_option(int fd, int level, int name, const void* value, socklen_t length,
               real::Real<int(int, int, int, const void*, socklen_t)>& to) {
  // Its notices would never come.
  if (level == SOL_SOCKET && name == SO_ZEROCOPY && HeldConnection(fd)) {
    return failed(EOPNOTSUPP);
  }
  return to(fd, level, name, value, length);
}

int control(int fd, unsigned long request, void* argument,
            real::Real<int(int, unsigned long, ...)>& real) {
  const Held socket(fd);
  if (!socket) return real(fd, request, argument);
  const State state = socket->state.load();
  if (request == FIONBIO) {
    int value = 0;
    std::memcpy(&value, argument, sizeof value);
    socket->nonblocking.store(value != 0);
    if (state == State::Listening && socket->tried.load()) return 0;
  }
  if (state == State::Connected && (request == FIONREAD || request == SIOCOUTQ)) {
    const int count = request == FIONREAD ? static_cast<int>(waiting_bytes(*socket)) : 0;
    std::memcpy(argument, &count, sizeof count);
    return 0;
  }
  return real(fd, request, argument);
}

}  // namespace

extern "C" {

int sockets_listen(int fd, int backlog) IB_STANDS_FOR("listen");
int sockets_listen(int fd, int backlog) {
  const NotWaiting call;
  const int result = real::listen(fd, backlog);
  if (result == 0) listens(fd, backlog);
  return result;
}

int sockets_accept4(int fd, sockaddr* address, socklen_t* length, int flags)
    IB_STANDS_FOR("accept4");
int sockets_accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  return accept_with(fd, address, length, flags);
}

int sockets_accept(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("accept");
int sockets_accept(int fd, sockaddr* address, socklen_t* length) {
  return accept_with(fd, address, length, 0);
}

int sockets_connect(int fd, const sockaddr* address, socklen_t length) IB_STANDS_FOR("connect");
int sockets_connect(int fd, const sockaddr* address, socklen_t length) {
  if (const Held socket(test_cancel(fd)); socket) {
    switch (socket->state.load()) {
      case State::Connected:
        return failed(address != nullptr && address->sa_family == AF_UNSPEC ? EOPNOTSUPP : EISCONN);
      case State::Connecting: return failed(EALREADY);
      case State::Free:
      case State::Plain:
      case State::Listening: return real::connect(fd, address, length);
    }
  }
  {
    const NotWaiting call;
    int result = 0;
    if (connects(fd, address, length, __builtin_return_address(0), result)) return result;
  }
  return real::connect(fd, address, length);
}

int sockets_shutdown(int fd, int how) IB_STANDS_FOR("shutdown");
int sockets_shutdown(int fd, int how) {
  const HeldConnection socket(fd);
  if (!socket) return real::shutdown(fd, how);
  const Rdma* api = loaded_rdma();
  if (api == nullptr || !socket->is_own() || socket->state.load() != State::Connected) {
    return failed(ENOTCONN);
  }
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return failed(EINVAL);
  if (how != SHUT_WR) {
    socket->read_shut.store(true);
    socket->note_read();  // the end is news for readers
    wake_sleepers();
  }
  if (how == SHUT_RD || socket->write_shut.exchange(true)) return 0;
  const Ending ending(socket->rs.load());
  const Alone alone(socket->rs.load(), Alone::Patience::Endless);
  static_cast<void>(api->shutdown(socket->rs.load(), how));
  return 0;
}

int sockets_getsockname(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("getsockname");
int sockets_getsockname(int fd, sockaddr* address, socklen_t* length) {
  const Held socket(fd);
  if (!socket || socket->state.load() != State::Connected) {
    return real::getsockname(fd, address, length);
  }
  return name_of(*socket, false, address, length);
}

int sockets_getpeername(int fd, sockaddr* address, socklen_t* length) IB_STANDS_FOR("getpeername");
int sockets_getpeername(int fd, sockaddr* address, socklen_t* length) {
  const Held socket(fd);
  if (!socket || socket->state.load() != State::Connected) {
    return real::getpeername(fd, address, length);
  }
  return name_of(*socket, true, address, length);
}

int sockets_getsockopt(int fd, int level, int name, void* value, socklen_t* length)
    IB_STANDS_FOR("getsockopt");
int sockets_getsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  return get_option(fd, level, name, value, length, real::getsockopt);
}

int sockets_setsockopt(int fd, int level, int name, const void* value, socklen_t length)
    IB_STANDS_FOR("setsockopt");
int sockets_setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  return set_option(fd, level, name, value, length, real::setsockopt);
}

int sockets_ioctl(int fd, unsigned long request, ...) IB_STANDS_FOR("ioctl");
int sockets_ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, request, argument, real::ioctl);
}

#if __TIMESIZE == 32
int sockets_getsockopt64(int fd, int level, int name, void* value, socklen_t* length)
    IB_STANDS_FOR("__getsockopt64");
int sockets_getsockopt64(int fd, int level, int name, void* value, socklen_t* length) {
  return get_option(fd, level, name, value, length, real::getsockopt64);
}

int sockets_setsockopt64(int fd, int level, int name, const void* value, socklen_t length)
    IB_STANDS_FOR("__setsockopt64");
int sockets_setsockopt64(int fd, int level, int name, const void* value, socklen_t length) {
  return set_option(fd, level, name, value, length, real::setsockopt64);
}

int sockets_ioctl_time64(int fd, unsigned long request, ...) IB_STANDS_FOR("__ioctl_time64");
int sockets_ioctl_time64(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return control(fd, request, argument, real::ioctl_time64);
}
#endif

}  // extern "C"
}  // namespace ib::host_abi::sockets
