// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a TCP socket to a link, and back to nothing: listen, connect and accept, each after the
// kernel's own call or before it; and the end of a number.
#include "host_abi/streams/connections.h"

#include "host_abi/sockets/common/own_process.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/tcp_socket.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/options.h"
#include "host_abi/streams/own_link.h"
#include "host_abi/streams/waiting.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;
using verbs::control::StreamAddress;

// Some listener of the table is not this process's yet.
constinit std::atomic<bool> has_untold_listeners{false};
constexpr int kLingerSliceMs = 10;

StreamAddress address_of(const sockaddr* name, socklen_t length) {
  StreamAddress address;
  const sockets::Endpoint endpoint = sockets::endpoint_of(name, length);
  if (!endpoint.valid) return address;
  address.address = endpoint.address;
  address.port = endpoint.port;
  if (name->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 six;
    std::memcpy(&six, name, sizeof six);
    address.scope = six.sin6_scope_id;
  }
  return address;
}

bool add_listener(int fd, bool is_told) {
  if (!is_on() || !has_place(fd) || is_in_table(fd) || !sockets::is_tcp(fd)) return false;
  sockets::Name name = sockets::local_name(fd);
  const StreamAddress local = address_of(name.get(), name.length);
  if (local.port == 0) return false;
  if (!sockets::is_wildcard(local.address) && !is_in_range(local)) return false;
  Ref listener = make();
  if (!listener) return false;
  // Bytes of a stream do not come by TCP, so it would wait for its time limit.
  constexpr int kNot = 0;
  static_cast<void>(real::setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT,
                                     static_cast<const void*>(&kNot), socklen_t{sizeof kNot}));
  listener->kind = Kind::Listener;
  listener->family = sockets::option(fd, SOL_SOCKET, SO_DOMAIN);
  listener->file = os::file_word(fd);
  listener->address = local;
  listener->is_inherited.store(!is_told);
  if (is_told) listen_at(local);
  return put(fd, std::move(listener));
}

int status_flags(int fd) {
  return static_cast<int>(::syscall(SYS_fcntl, static_cast<long>(fd), long{F_GETFL}));
}

void set_status_flags(int fd, int flags) {
  ::syscall(SYS_fcntl, static_cast<long>(fd), long{F_SETFL}, static_cast<long>(flags));
}

// The descriptor and socket of the program before they are a link.
struct Descriptor {
  int status = 0;  // flags
  bool close_at_exec = false;
  int linger = -1;  // seconds
};

// Gives the number of the TCP socket `fd` to the link. Returns false if that is not possible: then
// the stream ends, and so does the connection.
bool become_stream(int fd, user::StreamClient::Opened& opened, const Descriptor& as) {
  Ref stream = make();
  if (!stream || !has_place(fd)) return false;
  const int link = opened.link.get();
  streams::End& end = *opened.end;
  stream->family = sockets::option(fd, SOL_SOCKET, SO_DOMAIN);
  stream->stream = opened.out.stream;
  stream->end_number = opened.out.end;
  stream->file = os::file_word(link);
  take_options(fd, link, as.linger, end, *stream);
  end.shared().family = static_cast<std::uint32_t>(stream->family);
  if ((as.status & O_NONBLOCK) != 0) set_status_flags(link, O_RDWR | O_NONBLOCK);
  EpollMove epoll(fd);
  const long made = ::syscall(SYS_dup3, static_cast<long>(link), static_cast<long>(fd),
                              static_cast<long>(as.close_at_exec ? O_CLOEXEC : 0));
  if (epoll.done()) end.shared().wants_edges.store(1);
  if (made < 0) return false;
  stream->end.store(opened.end.release(), std::memory_order_release);
  return put(fd, std::move(stream));
}

// The kernel's connect() after softibd's at the same socket, which did not become a stream.
int connect_by_kernel(int fd, const sockaddr* address, socklen_t length, bool blocks) {
  const int result = real::connect(fd, address, length);
  if (result == 0) return 0;
  if (errno == EISCONN) return 0;
  if (errno == EALREADY && !blocks) errno = EINPROGRESS;
  return -1;
}

bool may_become_stream(int fd) {
  return has_place(fd) && sockets::is_tcp(fd) && sockets::remote_name(fd).length == 0 &&
         sockets::option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1;
}

// SO_LINGER: close() waits until the peer has everything, or the time is over.
void linger(int fd, streams::End& end) {
  const int seconds = linger_of(end);
  if (seconds <= 0) return;
  const std::int64_t until = now_ns() + std::int64_t{seconds} * 1'000'000'000;
  while (now_ns() < until) {
    {
      const Inside inside;
      OwnLink link(fd);
      end.go_on(link);
      if (end.unsent_bytes() == 0 || link.has_hung_up()) return;
    }
    real::poll(nullptr, nfds_t{0}, kLingerSliceMs);
  }
}

}  // namespace

bool listens(int fd) {
  return add_listener(fd, true);
}

void take_if_listener(int fd) {
  if (sockets::option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1) return;
  if (add_listener(fd, false)) has_untold_listeners.store(true);
}

void begin_listeners_as_child() {
  has_untold_listeners.store(true, std::memory_order_relaxed);
}

void tell_of_listeners() {
  if (!has_untold_listeners.load(std::memory_order_relaxed) || Inside::is()) return;
  if (sockets::in_vfork_child() || !has_untold_listeners.exchange(false)) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const Ref listener = find(fd);
    if (!listener || listener->kind != Kind::Listener) continue;
    const std::uint32_t own = sockets::generation();
    if (listener->generation.exchange(own) == own && !listener->is_inherited.exchange(false)) {
      continue;
    }
    listen_at(listener->address);
  }
}

bool connects(int fd, const sockaddr* address, socklen_t length, int& result) {
  if (!is_on() || Inside::is()) return false;
  const StreamAddress remote = address_of(address, length);
  if (remote.port == 0 || !is_in_range(remote) || !may_become_stream(fd)) return false;
  const int status = status_flags(fd);
  if (status < 0) return false;
  const bool blocks = (status & O_NONBLOCK) == 0;
  const long own_flags = ::syscall(SYS_fcntl, static_cast<long>(fd), long{F_GETFD});
  const Descriptor as{status, (own_flags & FD_CLOEXEC) != 0, linger_of_tcp(fd)};
  if (blocks) set_status_flags(fd, status | O_NONBLOCK);
  auto opened = connect_to(remote, fd);
  if (!opened) {
    if (blocks) set_status_flags(fd, status);
    result = connect_by_kernel(fd, address, length, blocks);
    return true;
  }
  if (!become_stream(fd, *opened, as)) {
    if (blocks) set_status_flags(fd, status);
    errno = ECONNREFUSED;
    result = -1;
    return true;
  }
  // It is connected, but programs that do not block expect to hear that from poll().
  result = blocks ? 0 : -1;
  if (!blocks) errno = EINPROGRESS;
  return true;
}

void accepted(int fd, int flags, sockaddr* address, socklen_t* length, socklen_t room) {
  if (!is_on() || Inside::is()) return;
  const int error = errno;
  sockets::Name local = sockets::local_name(fd);
  sockets::Name remote = sockets::remote_name(fd);
  const StreamAddress own = address_of(local.get(), local.length);
  const StreamAddress peer = address_of(remote.get(), remote.length);
  if (own.port != 0 && peer.port != 0 && is_in_range(own)) {
    auto opened = accept_from(own, peer);
    if (opened) {
      streams::End& end = *opened->end;
      const Descriptor as{(flags & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0,
                          (flags & SOCK_CLOEXEC) != 0, linger_of_tcp(fd)};
      if (become_stream(fd, *opened, as) && address != nullptr && length != nullptr) {
        *length = room;
        if (const Ref stream = find_stream(fd)) name_of(end, *stream, true, address, length);
      }
    }
  }
  errno = error;
}

void about_to_close(int fd) {
  if (Inside::is() || sockets::in_vfork_child()) return;  // there all of this is the parent's
  const int error = errno;
  forget_set(fd);
  if (is_in_table(fd)) {
    if (Ref one = find_stream(fd); one && one->numbers.load() == 1) {
      streams::End* const end = opened_end_of(*one);
      if (end != nullptr) linger(fd, *end);
      if (!is_shared(*one)) leave_epoll_sets(fd);
    }
    const Ref one = forget(fd);
    const bool is_last = one && one->numbers.load() == 0;
    if (is_last && one->kind == Kind::Stream) {
      streams::End* const end = opened_end_of(*one);
      if (end != nullptr) end->shared().close_hint.store(1);
    } else if (is_last && one->generation.load() == sockets::generation() &&
               !one->is_inherited.load()) {
      unlisten_at(one->address);
    }
  }
  forget_epoll_records(fd);
  errno = error;
}

int name_of(streams::End& end, const Socket& stream, bool peer, sockaddr* address,
            socklen_t* length) {
  const StreamAddress& from = peer ? end.remote() : end.local();
  sockets::Endpoint endpoint;
  endpoint.address = from.address;
  endpoint.port = from.port;
  sockets::Name name = sockets::make_name(endpoint, stream.family == AF_INET6, from.scope);
  std::memcpy(address, &name.storage, std::min(*length, name.length));
  *length = name.length;
  return 0;
}

}  // namespace ib::host_abi::stream_switch
