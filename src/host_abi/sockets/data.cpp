// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/data.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/wait.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

namespace ib::host_abi::sockets {
namespace {

// rsockets cut a write into pieces of 2 KiB, 4 KiB and so on, and return those that have come.
constexpr std::size_t kFirstPiece = 2048;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // rsockets count in int
constexpr std::size_t kMostCounted = 65536;                // by FIONREAD
constexpr std::size_t kSetAside = 65536;                   // at once

ssize_t failed(int error) {
  errno = error;
  return -1;
}

ssize_t inherited() {
  static constinit bool said = false;
  say_once(said,
           "softib: sockets: this process has inherited an RDMA connection, which only its parent "
           "can use: ECONNRESET. A server that forks for each connection needs plain TCP: start it "
           "without --sockets; its clients may keep that option\n");
  return failed(ECONNRESET);
}

ssize_t broken_pipe(int flags) {
  if ((flags & MSG_NOSIGNAL) == 0) ::raise(SIGPIPE);
  return failed(EPIPE);
}

// rsockets report an end without an error even after one.
int error_of(const Rdma& api, Socket& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (api.getsockopt(socket.rs.load(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return EIO;
  if (error != 0) return error;
  const Alone alone(socket.rs.load());
  pollfd entry{socket.rs.load(), 0, 0};
  return alone.valid() && api.poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR) != 0 ? EIO : 0;
}

ssize_t take(const Rdma& api, Socket& socket, void* buffer, std::size_t length, int flags) {
  const Alone alone(socket.rs.load());
  if (!alone.valid()) return failed(EAGAIN);
  if (socket.aside.size() > 0) {
    const bool peeks = (flags & MSG_PEEK) != 0;
    return static_cast<ssize_t>(socket.aside.take(static_cast<char*>(buffer), length, peeks));
  }
  return api.recv(socket.rs.load(), buffer, length, flags);
}

ssize_t put(const Rdma& api, Socket& socket, const void* buffer, std::size_t length) {
  const Alone alone(socket.rs.load());
  if (!alone.valid()) return failed(EAGAIN);
  return api.send(socket.rs.load(), buffer, length, MSG_DONTWAIT);
}

bool would_block(const Socket& socket, int flags) {
  return socket.nonblocking.load() || (flags & MSG_DONTWAIT) != 0;
}

bool wants_all(const Socket& socket, int flags) {
  return (flags & MSG_WAITALL) != 0 && !would_block(socket, flags);
}

// The result of a read that does not get as far as rsockets.
std::optional<ssize_t> result_of_read_at_once(const Rdma* api, Socket& socket, std::size_t length,
                                              int flags) {
  if (!socket.is_own() || api == nullptr) return inherited();
  if (socket.state.load() == State::Connecting) return failed(EAGAIN);
  if ((flags & MSG_OOB) != 0) return failed(EINVAL);
  if ((flags & MSG_ERRQUEUE) != 0) return failed(EAGAIN);
  if ((flags & MSG_TRUNC) != 0) return failed(EOPNOTSUPP);
  if (length == 0) return 0;
  return std::nullopt;
}

// After an attempt that has brought no bytes (`got`: its result): the result of the whole read,
// which has `done` bytes, or nothing if it goes on when there are more.
std::optional<ssize_t> result_without_bytes(const Rdma& api, Socket& socket, ssize_t got,
                                            std::size_t done, int flags) {
  if (got == 0) {
    if (error_of(api, socket) == 0 || socket.end_reported.exchange(true)) return 0;
    return failed(ECONNRESET);
  }
  const bool is_empty = errno == EAGAIN || errno == EWOULDBLOCK;
  if (is_empty && socket.read_shut.load()) return static_cast<ssize_t>(done);
  const bool is_lost = is_empty && socket.lost.load();
  if (!is_empty) socket.broken.store(true);
  if (is_empty && !is_lost && !would_block(socket, flags)) return std::nullopt;
  if (done > 0) return static_cast<ssize_t>(done);
  if (is_lost && socket.end_reported.exchange(true)) return 0;
  return failed(is_empty && !is_lost ? EAGAIN : ECONNRESET);
}

// The result of a write that does not get as far as rsockets.
std::optional<ssize_t> result_of_write_at_once(const Rdma* api, Socket& socket, std::size_t length,
                                               int flags) {
  if (!socket.is_own() || api == nullptr) return inherited();
  if (socket.state.load() == State::Connecting) return failed(EAGAIN);
  if ((flags & (MSG_OOB | MSG_ZEROCOPY)) != 0) return failed(EOPNOTSUPP);
  if (socket.write_shut.load() || socket.broken.load()) return broken_pipe(flags);
  if (length == 0) return 0;
  // rsockets take bytes for a peer that is gone as long as there is room.
  if ((look_at(socket, POLLOUT) & (POLLHUP | POLLERR)) != 0) {
    socket.broken.store(true);
    return failed(ECONNRESET);
  }
  return std::nullopt;
}

}  // namespace

ssize_t receive(int fd, Socket& socket, void* buffer, std::size_t length, int flags) {
  const Rdma* api = loaded_rdma();
  if (const auto result = result_of_read_at_once(api, socket, length, flags)) return *result;
  length = std::min(length, kMostAtOnce);
  const bool peeks = (flags & MSG_PEEK) != 0;
  std::size_t done = 0;
  while (true) {
    // Before the attempt: what comes after it is a new edge.
    if (!peeks) socket.note_read();
    const ssize_t got =
        take(*api, socket, static_cast<char*>(buffer) + done, length - done, flags & MSG_PEEK);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
      const bool may_be_all =
          static_cast<std::size_t>(got) < kFirstPiece && !wants_all(socket, flags);
      if (done == length || peeks || may_be_all) break;
      continue;
    }
    if (done > 0 && (got == 0 || (flags & MSG_WAITALL) == 0)) break;
    if (const auto result = result_without_bytes(*api, socket, got, done, flags)) return *result;
    if (const int error = wait_for(fd, socket, POLLIN); error != 0) {
      return done > 0 ? static_cast<ssize_t>(done) : failed(error);
    }
  }
  return static_cast<ssize_t>(done);
}

ssize_t transmit(int fd, Socket& socket, const void* buffer, std::size_t length, int flags) {
  const Rdma* api = loaded_rdma();
  if (const auto result = result_of_write_at_once(api, socket, length, flags)) return *result;
  std::size_t done = 0;
  while (done < length) {
    const std::size_t part = std::min(length - done, kMostAtOnce);
    const ssize_t sent = put(*api, socket, static_cast<const char*>(buffer) + done, part);
    if (sent > 0) done += static_cast<std::size_t>(sent);
    if (sent == static_cast<ssize_t>(part)) continue;
    const int error = sent < 0 ? errno : EAGAIN;
    if (error != EAGAIN && error != EWOULDBLOCK) {
      if (done > 0) break;
      socket.broken.store(true);
      return failed(ECONNRESET);
    }
    socket.note_full_write();
    if (would_block(socket, flags)) return done > 0 ? static_cast<ssize_t>(done) : failed(EAGAIN);
    if (const int reason = wait_for(fd, socket, POLLOUT); reason != 0) {
      return done > 0 ? static_cast<ssize_t>(done) : failed(reason);
    }
  }
  return static_cast<ssize_t>(done);
}

SetAside set_aside(Socket& socket) {
  const Rdma* api = loaded_rdma();
  const Alone alone(socket.rs.load());
  if (!alone.valid() || socket.readers.load() > 0) return SetAside::Never;
  char* room = socket.aside.room_for(kSetAside);
  if (room == nullptr) return SetAside::Never;
  const ssize_t got = api->recv(socket.rs.load(), room, kSetAside, MSG_DONTWAIT);
  if (got > 0) {
    socket.aside.add(static_cast<std::size_t>(got));
    wake_sleepers();  // one of them may wait for these bytes
    return SetAside::Some;
  }
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? SetAside::NoneYet : SetAside::Never;
}

std::size_t waiting_bytes(Socket& socket) {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || !socket.is_own() || socket.state.load() != State::Connected) return 0;
  // rsockets count only what they copy.
  char few[512];
  auto* many = static_cast<char*>(std::malloc(kMostCounted));
  const ssize_t count = many != nullptr ? take(*api, socket, many, kMostCounted, MSG_PEEK)
                                        : take(*api, socket, few, sizeof few, MSG_PEEK);
  std::free(many);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace ib::host_abi::sockets
