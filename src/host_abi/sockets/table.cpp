// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/table.h"

#include "host_abi/sockets/epoll.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/wait.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>

namespace ib::host_abi::sockets {
namespace {

constinit std::array<std::atomic<Socket*>, kMostDescriptors> table{};
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<int> highest{-1};

class Locked {
 public:
  Locked() { ::pthread_mutex_lock(&lock); }
  ~Locked() { ::pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

bool in_range(int fd) {
  return fd >= 0 && fd < kMostDescriptors;
}

void close_kernel(int fd) {
  if (fd >= 0) ::syscall(SYS_close, fd);
}

void end(Socket* socket) {
  const int error = errno;
  const int rs = socket->rs.load();
  const Rdma* api = loaded_rdma();
  if (rs >= 0 && api != nullptr && socket->is_own()) {
    unwatch(rs);
    const Inside inside;
    api->close(rs);
    note_closed(socket->state.load());
  }
  close_kernel(socket->event.load());
  delete socket;
  errno = error;
}

void release(Socket* socket) {
  if (socket != nullptr && socket->references.fetch_sub(1) == 1) end(socket);
}

}  // namespace

bool Socket::is_own() const {
  return generation == sockets::generation();
}

Ref::Ref(const Ref& other) : socket_(other.socket_) {
  if (socket_ != nullptr) socket_->references.fetch_add(1);
}
Ref::~Ref() {
  release(socket_);
}

Ref find(int fd) {
  if (!in_range(fd) || table[static_cast<std::size_t>(fd)].load() == nullptr) return {};
  const Locked locked;
  Socket* socket = table[static_cast<std::size_t>(fd)].load();
  if (socket == nullptr) return {};
  socket->references.fetch_add(1);
  return Ref(socket);
}

Ref add(int fd, State state, int family, bool nonblocking) {
  if (!in_range(fd)) return {};
  auto* socket = new (std::nothrow) Socket;
  if (socket == nullptr) return {};
  socket->references.store(2);  // the table's and the caller's
  socket->descriptors.store(1);
  socket->generation = generation();
  socket->family = family;
  socket->nonblocking.store(nonblocking);
  socket->state.store(state);
  const Locked locked;
  table[static_cast<std::size_t>(fd)].store(socket);
  if (fd > highest.load()) highest.store(fd);
  return Ref(socket);
}

void copy(int from, int to) {
  if (!in_range(from) || table[static_cast<std::size_t>(from)].load() == nullptr) return;
  if (!in_range(to)) return;  // its calls end with ENOTCONN
  const Locked locked;
  Socket* socket = table[static_cast<std::size_t>(from)].load();
  if (socket == nullptr) return;
  socket->references.fetch_add(1);
  socket->descriptors.fetch_add(1);
  table[static_cast<std::size_t>(to)].store(socket);
  if (to > highest.load()) highest.store(to);
}

void forget(int fd) {
  if (!in_range(fd)) return;
  forget_in_epolls(fd);
  if (table[static_cast<std::size_t>(fd)].load() == nullptr) return;
  if (in_vfork_child()) return;  // the table is the parent's
  Socket* socket = nullptr;
  {
    const Locked locked;
    socket = table[static_cast<std::size_t>(fd)].exchange(nullptr);
  }
  if (socket == nullptr) return;
  socket->descriptors.fetch_sub(1);
  release(socket);
}

int next_in_table(int from) {
  for (int fd = from < 0 ? 0 : from; fd <= highest.load(); ++fd) {
    if (table[static_cast<std::size_t>(fd)].load() != nullptr) return fd;
  }
  return -1;
}

void shut_down_all() {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || in_vfork_child() || Inside::depth > 0) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const Ref socket = find(fd);
    if (!socket || socket->state.load() != State::Connected || !socket->is_own()) continue;
    const Ending ending(socket->rs.load());
    const Alone alone(socket->rs.load(), Alone::Patience::Short);
    if (alone.valid()) api->shutdown(socket->rs.load(), SHUT_RDWR);
  }
}

void release_locks_of_parent() {
  lock = PTHREAD_MUTEX_INITIALIZER;
  release_epoll_locks_of_parent();
}

}  // namespace ib::host_abi::sockets
