// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/held.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/stdio_streams.h"

#include <poll.h>
#include <pthread.h>

#include <cerrno>

namespace ib::host_abi::sockets {
namespace {

constexpr int kSlice = 50;  // ms

constinit thread_local LastUse last_use;

bool is_connecting(const Socket& socket) {
  return socket.state.load() == State::Connecting && socket.event.get() >= 0;
}

}  // namespace

Held::Held(int fd) {
  if (!is_in_table(fd)) return;
  call_.enter(clean, this);
  fd_ = fd;
  socket_ = last_use.was_just_now(fd, ticks()) ? find_unchecked(fd) : find(fd);
  if (!socket_) call_.leave();
}

void Held::let_go() {
  if (socket_) last_use.end(fd_, ticks());
  socket_ = Ref();
  call_.leave();
}

void Held::clean(void* held) {
  static_cast<Held*>(held)->socket_ = Ref();
}

int test_cancel(int fd) {
  if (is_in_table(fd)) ::pthread_testcancel();
  return fd;
}

HeldConnection::HeldConnection(int fd) : Held(test_cancel(fd)) {
  if (!*this) return;
  Socket& socket = **this;
  while (is_connecting(socket) && !socket.nonblocking.load()) {
    end_if_cancelled();
    pollfd ended{socket.event.get(), POLLIN, 0};
    if (real::poll(&ended, nfds_t{1}, kSlice) < 0) return;
  }
  const State state = socket.state.load();
  if (state != State::Connected && state != State::Connecting) let_go();
}

bool is_connection(int fd) {
  return static_cast<bool>(HeldConnection(fd));
}

}  // namespace ib::host_abi::sockets
