// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/table.h"

#include "host_abi/sockets/closed_numbers.h"
#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/sockets/epoll_sets.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"
#include "host_abi/sockets/wait.h"

#include <sys/socket.h>

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

std::atomic<Socket*>& place_of(int fd) {
  return table[static_cast<std::size_t>(fd)];
}

void end(Socket* socket) {
  const int error = errno;
  if (socket->is_own()) close_rsocket(*socket);
  delete socket;
  errno = error;
}

void release(Socket* socket) {
  if (socket != nullptr && socket->references.fetch_sub(1) == 1) end(socket);
}

// The table does without `socket`, to which the reference belongs: the program has closed its
// number.
void let_go(Ref socket) {
  socket->descriptors.fetch_sub(1);
  end_elsewhere(std::move(socket));
}

// Gives the number to `socket`, with a reference of it.
void put(int fd, Socket* socket) {
  Ref before;
  {
    const Locked locked;
    before = Ref(place_of(fd).exchange(socket));
    if (fd > highest.load()) highest.store(fd);
  }
  if (before) let_go(std::move(before));
}

}  // namespace

bool Socket::is_own() const {
  return generation == sockets::generation();
}

void Socket::note(std::atomic<std::uint32_t>& count) {
  count.fetch_add(1);
  if (without_edge.load() > 0) wake_sleepers();
}

Ref::Ref(const Ref& other) : socket_(other.socket_) {
  if (socket_ != nullptr) socket_->references.fetch_add(1);
}
Ref::~Ref() {
  release(socket_);
}

Ref find_unchecked(int fd) {
  if (!is_in_table(fd)) return {};
  const Locked locked;
  Socket* socket = place_of(fd).load();
  if (socket == nullptr) return {};
  socket->references.fetch_add(1);
  return Ref(socket);
}

Ref find(int fd) {
  Ref socket = find_unchecked(fd);
  if (!socket || still_means(fd, socket->file)) return socket;
  if (in_vfork_child()) return {};  // the table is the parent's
  {
    const Locked locked;
    if (place_of(fd).load() != &*socket) return {};
    place_of(fd).store(nullptr);
  }
  socket->references.fetch_sub(1);  // the table's
  let_go(std::move(socket));
  return {};
}

Ref add(int fd, State state, int family, bool nonblocking, OwnDescriptor event) {
  if (!in_range(fd)) return {};
  auto* socket = new (std::nothrow) Socket;
  if (socket == nullptr) return {};
  socket->references.store(2);  // the table's and the caller's
  socket->descriptors.store(1);
  socket->generation = generation();
  socket->file = os::file_word(fd);
  socket->event = std::move(event);
  socket->family = family;
  socket->nonblocking.store(nonblocking);
  socket->state.store(state);
  put(fd, socket);
  return Ref(socket);
}

void copy(int from, int to) {
  Ref socket = find(from);
  if (!socket || !in_range(to)) return;  // its calls end with ENOTCONN
  socket->descriptors.fetch_add(1);
  put(to, socket.take());
}

void forget(int fd) {
  if (!in_range(fd)) return;
  forget_in_epolls(fd);
  const Ref socket = find(fd);
  if (!socket || in_vfork_child()) return;  // the table is the parent's
  {
    const Locked locked;
    if (place_of(fd).load() != &*socket) return;
    place_of(fd).store(nullptr);
  }
  socket->descriptors.fetch_sub(1);
  release(&*socket);
}

bool is_in_table(int fd) {
  return in_range(fd) && place_of(fd).load() != nullptr;
}

int next_in_table(int from) {
  for (int fd = from < 0 ? 0 : from; fd <= highest.load(); ++fd) {
    if (place_of(fd).load() != nullptr) return fd;
  }
  return -1;
}

void shut_down_all() {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || in_vfork_child() || Inside::depth > 0) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const Ref socket = find_unchecked(fd);  // also what was closed without libc
    if (!socket || socket->state.load() != State::Connected || !socket->is_own()) continue;
    if (socket->lost.load()) continue;  // nobody would hear it
    const Ending ending(socket->rs.load());
    const Alone alone(socket->rs.load(), Alone::Patience::Short);
    if (alone.valid()) api->shutdown(socket->rs.load(), SHUT_RDWR);
  }
  end_the_rest();
}

void release_locks_of_parent() {
  lock = PTHREAD_MUTEX_INITIALIZER;
  release_epoll_locks_of_parent();
  forget_sleepers_of_parent();
  release_lock_of_streams();
}

}  // namespace ib::host_abi::sockets
