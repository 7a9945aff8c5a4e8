// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/switch.h"

#include "host_abi/sockets/closed_numbers.h"
#include "host_abi/sockets/common/ranges.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/tcp_socket.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/wait.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

constexpr int kFewConnections = 4;
constexpr int kLargeRoom = 1 << 20;
constexpr int kUsualRoom = 1 << 17;

constinit Ranges ranges;
constinit bool on = false;
constinit std::atomic<int> listeners{0};
constinit std::atomic<int> connections{0};
// Of the process that has counted: a child of it begins with none.
constinit std::atomic<std::uint32_t> counted_generation{0};

[[gnu::constructor]] void read_settings() {
  const char* text = ::secure_getenv("SOFTIB_SOCKETS");
  on = text != nullptr && ranges.parse(text);
  static constinit bool said = false;
  if (text != nullptr && !on) {
    say_once(said, "softib: SOFTIB_SOCKETS is not a list of addresses; all connections use TCP\n");
  }
}

void set(const Rdma& api, int rs, int level, int name, int value) {
  static_cast<void>(api.setsockopt(rs, level, name, &value, sizeof value));
}

void count_own() {
  if (counted_generation.exchange(generation()) == generation()) return;
  listeners.store(0);
  connections.store(0);
}

// Sets the receive buffer of a connection that comes after `others`. A writer goes on while its
// reader sleeps or copies, which the 128 KiB of rsockets are short for; but many large ones do not
// fit into the caches, so only the first connections have them. The administrator's own size
// (mem_default) stays.
void give_room(const Rdma& api, int rs, int others) {
  if (::access("/etc/rdma/rsocket/mem_default", F_OK) == 0) return;
  const bool is_few = others < kFewConnections;
  // rsockets double it, as the kernel does.
  set(api, rs, SOL_SOCKET, SO_RCVBUF, (is_few ? kLargeRoom : kUsualRoom) / 2);
}

// Without messages now and then, a reader is not told that its peer was killed.
bool prepare(const Rdma& api, int rs) {
  const WithoutSignals no_signals;
  set(api, rs, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(api, rs, SOL_SOCKET, SO_KEEPALIVE, 1);
  return api.fcntl(rs, F_SETFL, O_NONBLOCK) == 0;
}

// Returns an rsocket that is connected as the program's would be, or -1: then TCP has to decide.
// It counts as a connection from the start: programs make many at the same time.
int connect_over_rdma(const Rdma& api, const Endpoint& local, const Endpoint& remote) {
  const bool as_ipv6 = !is_mapped(remote.address);
  const int rs = api.socket(as_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (rs < 0) return -1;
  bool fine = true;
  count_own();
  give_room(api, rs, connections.fetch_add(1));
  if (local.valid && (local.port != 0 || !is_wildcard(local.address))) {
    set(api, rs, SOL_SOCKET, SO_REUSEADDR, 1);
    Endpoint from = local;
    if (is_mapped(from.address) == as_ipv6) from.address = {};
    Name source = make_name(from, as_ipv6);
    fine = api.bind(rs, source.get(), source.length) == 0;
  }
  Name destination = make_name(remote, as_ipv6);
  fine = fine && api.connect(rs, destination.get(), destination.length) == 0;
  if (fine && prepare(api, rs)) return rs;
  connections.fetch_sub(1);
  api.close(rs);
  return -1;
}

void set_connected(Socket& socket, int rs) {
  socket.rs.store(rs);
  watch(rs);
  socket.state.store(State::Connected);
  look_after_numbers();
}

void wake(Socket& socket) {
  const std::uint64_t one = 1;
  if (socket.event.is_intact()) {
    static_cast<void>(!real::write(socket.event.get(), static_cast<const void*>(&one), sizeof one));
  }
}

struct Attempt {
  Ref socket;
  OwnDescriptor fd;  // a duplicate: the program may close its own
  Endpoint local, remote;
  sockaddr_storage address{};
  socklen_t length = 0;
};

void* attempt(void* argument) {
  auto* todo = static_cast<Attempt*>(argument);
  Socket& socket = *todo->socket;
  const int rs = connect_over_rdma(*loaded_rdma(), todo->local, todo->remote);
  if (rs >= 0) {
    set_connected(socket, rs);
  } else {
    // Not blocking, as the program has set it; the kernel reports the rest.
    const auto* address = reinterpret_cast<const sockaddr*>(&todo->address);
    if (!todo->fd.is_intact()) {
      socket.error.store(EBADF);
    } else if (real::connect(todo->fd.get(), address, todo->length) != 0 && errno != EINPROGRESS) {
      socket.error.store(errno);
    }
    socket.state.store(State::Plain);
  }
  wake(socket);
  delete todo;
  return nullptr;
}

bool start_thread(void* (*function)(void*), void* argument) {
  const WithoutSignals no_signals;
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, nullptr, function, argument) == 0;
  if (started) ::pthread_detach(thread);
  return started;
}

bool connect_in_background(int fd, const Endpoint& remote, const sockaddr* address,
                           socklen_t length, int& result) {
  auto* todo = new (std::nothrow) Attempt;
  if (todo == nullptr) return false;
  todo->fd = OwnDescriptor(real::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  OwnDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (todo->fd.get() >= 0 && event.get() >= 0) {
    todo->socket =
        add(fd, State::Connecting, option(fd, SOL_SOCKET, SO_DOMAIN), true, std::move(event));
  }
  if (!todo->socket) {
    delete todo;
    return false;
  }
  todo->local = local_endpoint(fd);
  todo->remote = remote;
  todo->length = std::min<socklen_t>(length, sizeof todo->address);
  std::memcpy(&todo->address, address, todo->length);
  if (!start_thread(attempt, todo)) {
    forget(fd);
    delete todo;
    return false;
  }
  errno = EINPROGRESS;
  result = -1;
  return true;
}

// An rsocket that listens where the listener of the program does, or -1. Without SO_REUSEADDR: of
// several processes that begin at the same time all would bind, and then none could listen.
int make_listener(const Rdma& api, int fd, int backlog) {
  const WithoutSignals no_signals;
  const Endpoint local = local_endpoint(fd);
  const bool only_ipv4 = is_mapped(local.address);
  const int rs = api.socket(only_ipv4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
  if (rs < 0) return -1;
  unwatch(rs);  // an earlier one with this number has ended
  give_room(api, rs, connections.load());
  if (!only_ipv4) set(api, rs, IPPROTO_IPV6, IPV6_V6ONLY, option(fd, IPPROTO_IPV6, IPV6_V6ONLY));
  Name name = make_name(local, !only_ipv4);
  if (api.fcntl(rs, F_SETFL, O_NONBLOCK) == 0 && api.bind(rs, name.get(), name.length) == 0 &&
      api.listen(rs, backlog) == 0) {
    return rs;
  }
  api.close(rs);
  return -1;
}

}  // namespace

bool is_on() {
  return on;
}

bool wants_rdma(int fd, const sockaddr* address, socklen_t length) {
  if (!on) return false;
  const Endpoint remote = endpoint_of(address, length);
  return remote.valid && remote.port != 0 && ranges.contains(remote.address) && is_tcp(fd);
}

bool connects(int fd, const sockaddr* address, socklen_t length, const void* caller, int& result) {
  if (!wants_rdma(fd, address, length)) return false;
  const Rdma* api = rdma();
  if (api == nullptr || is_in_librdmacm(caller)) return false;
  Name name;
  name.length = sizeof name.storage;
  if (real::getpeername(fd, name.get(), &name.length) == 0) return false;  // EISCONN
  if (option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1) return false;
  const Endpoint remote = endpoint_of(address, length);
  if ((real::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) {
    return connect_in_background(fd, remote, address, length, result);
  }
  const int rs = connect_over_rdma(*api, local_endpoint(fd), remote);
  if (rs < 0) return false;
  const Ref socket = add(fd, State::Connecting, option(fd, SOL_SOCKET, SO_DOMAIN), false);
  if (!socket) {
    connections.fetch_sub(1);
    api->close(rs);
    return false;
  }
  set_connected(*socket, rs);
  result = 0;
  return true;
}

void listens(int fd, int backlog) {
  if (!on || find(fd) || !is_tcp(fd)) return;
  const Endpoint local = local_endpoint(fd);
  if (!local.valid) return;
  if (!is_wildcard(local.address) && !ranges.contains(local.address)) return;
  const int flags = real::fcntl(fd, F_GETFL);
  const Ref socket =
      add(fd, State::Listening, option(fd, SOL_SOCKET, SO_DOMAIN), (flags & O_NONBLOCK) != 0);
  if (socket) socket->backlog = backlog;
}

void listen_over_rdma(int fd, Socket& socket) {
  if (!socket.is_own()) {  // inherited: this process has not tried
    socket.generation = generation();
    socket.rs.store(-1);
    socket.tried.store(false);
  }
  if (socket.tried.exchange(true)) return;
  // Waits for both kinds of connections happen in the switch.
  const int flags = real::fcntl(fd, F_GETFL);
  if ((flags & O_NONBLOCK) == 0) real::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const Rdma* api = rdma();
  if (api == nullptr) return;
  count_own();
  if (listeners.fetch_add(1) >= kMostListeners) {
    listeners.fetch_sub(1);
    return;
  }
  const int rs = make_listener(*api, fd, socket.backlog);
  if (rs < 0) {
    listeners.fetch_sub(1);
    return;
  }
  watch_queue_of(rs);
  socket.rs.store(rs);
  look_after_numbers();
}

namespace {

// Connections that nobody has accepted, which rsockets would leave open: their peers get a reset,
// as over TCP.
void end_unaccepted(const Rdma& api, int listener) {
  end_requests(listener);
  pollfd waiting{listener, POLLIN, 0};
  while (api.poll(&waiting, 1, 0) > 0) {
    const int rs = accept_rsocket(api, listener);
    if (rs < 0) return;
    abort_rsocket(api, rs);
  }
}

}  // namespace

void close_rsocket(Socket& socket) {
  const Rdma* api = loaded_rdma();
  const int rs = socket.rs.load();
  const State state = socket.state.load();
  if (api == nullptr || rs < 0) return;
  const Inside inside;
  // A goodbye would wait for a peer that is gone, as long as the connection has retries.
  const bool lost = state == State::Connected && is_lost(socket);
  unwatch(rs);
  if (state == State::Listening) end_unaccepted(*api, rs);
  if (lost) {
    abort_rsocket(*api, rs);
  } else {
    api->close(rs);
  }
  if (state == State::Listening) listeners.fetch_sub(1);
  if (state == State::Connected) connections.fetch_sub(1);
}

namespace {

int accept_over_rdma(const Rdma& api, Socket& listener, sockaddr* address, socklen_t* length,
                     int flags) {
  pollfd ready{listener.rs.load(), POLLIN, 0};
  listener.note_read();
  if (ready.fd < 0 || api.poll(&ready, 1, 0) <= 0) return -1;
  const int rs = accept_rsocket(api, ready.fd);
  if (rs < 0) return -1;
  static_cast<void>(prepare(api, rs));
  const int fd = ::socket(listener.family, SOCK_STREAM | (flags & SOCK_CLOEXEC), 0);
  Ref socket;
  if (fd >= 0) {
    if ((flags & SOCK_NONBLOCK) != 0) real::fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    socket = add(fd, State::Connecting, listener.family, (flags & SOCK_NONBLOCK) != 0);
  }
  if (!socket) {
    const int error = fd < 0 ? errno : ENOBUFS;
    abort_rsocket(api, rs);
    if (fd >= 0) real::close(fd);
    errno = error;
    return -2;
  }
  set_connected(*socket, rs);
  give_room(api, ready.fd, connections.fetch_add(1) + 1);
  if (address != nullptr && length != nullptr) name_of(*socket, true, address, length);
  return fd;
}

}  // namespace

int accept_now(int fd, Socket& socket, sockaddr* address, socklen_t* length, int flags) {
  listen_over_rdma(fd, socket);
  if (const Rdma* api = loaded_rdma(); api != nullptr && socket.is_own()) {
    const int accepted = accept_over_rdma(*api, socket, address, length, flags);
    if (accepted != -1) return accepted < 0 ? -1 : accepted;
  }
  return real::accept4(fd, address, length, flags);
}

int name_of(Socket& socket, bool peer, sockaddr* address, socklen_t* length) {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || !socket.is_own()) {
    errno = ENOTCONN;
    return -1;
  }
  Name name;
  name.length = sizeof name.storage;
  const int rs = socket.rs.load();
  if ((peer ? api->getpeername : api->getsockname)(rs, name.get(), &name.length) != 0) return -1;
  const Endpoint endpoint = endpoint_of(name.get(), name.length);
  if (endpoint.valid) name = make_name(endpoint, socket.family == AF_INET6);
  std::memcpy(address, &name.storage, std::min(*length, name.length));
  *length = name.length;
  return 0;
}

}  // namespace ib::host_abi::sockets
