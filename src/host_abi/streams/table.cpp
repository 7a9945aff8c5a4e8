// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers to sockets, without a lock for those who look: signal handlers and children of fork() do.
// Sockets whose last reference has gone are reused, never freed.
#include "host_abi/streams/table.h"

#include "host_abi/sockets/common/own_process.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/sandbox.h"

#include <pthread.h>

#include <array>
#include <new>

namespace ib::host_abi::stream_switch {
namespace {

using sockets::in_vfork_child;

constinit std::array<std::atomic<Socket*>, kMostDescriptors> table{};
constinit std::atomic<int> highest{-1};
constinit std::atomic<int> stream_count{0};  // numbers
constinit std::atomic<int> lefts{0};
constexpr std::size_t kSetHashes = 256;
constinit std::array<std::atomic<int>, kSetHashes> lefts_by_set{};
constinit std::atomic<int> lefts_in_any{0};
constinit std::atomic<int> lefts_in_none{0};
// Without references: their ends are not closed yet. Anybody pushes; one takes all.
constinit std::atomic<Socket*> retired{nullptr};
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Socket* unused = nullptr;  // under the lock
constinit thread_local sockets::LastUse last_use;

std::atomic<Socket*>& place_of(int fd) {
  return table[static_cast<std::size_t>(fd)];
}

std::atomic<int>& lefts_in(int set) {
  return lefts_by_set[static_cast<std::size_t>(set) % kSetHashes];
}
std::atomic<int>& lefts_of(LeftBy by) {
  if (by.is_in_no_set()) return lefts_in_none;
  return by.is_in_any_set() ? lefts_in_any : lefts_in(by.set());
}

// The number no longer means `socket`, whose reference it had.
void drop_number(Socket& socket) {
  socket.numbers.fetch_sub(1);
  if (socket.kind == Kind::Stream) stream_count.fetch_sub(1);
}

// An end that a parent of this process has opened cannot be closed here: its memory is not mapped
// any more.
void close_end(Socket& socket) {
  streams::End* const end = socket.end.exchange(nullptr);
  if (end != nullptr && socket.generation.load() == sockets::generation()) delete end;
}

// Under the lock, inside.
void reclaim() {
  Socket* one = retired.exchange(nullptr);
  while (one != nullptr) {
    Socket* const next = one->next;
    close_end(*one);
    one->next = unused;
    unused = one;
    one = next;
  }
}

bool still_means(int fd, const Socket& socket) {
  return is_in_sandbox() || last_use.was_just_now(fd, sockets::ticks()) ||
         sockets::still_means(fd, socket.file);
}

bool remove(int fd, Socket& socket) {
  Socket* expected = &socket;
  if (!place_of(fd).compare_exchange_strong(expected, nullptr)) return false;
  drop_number(socket);
  release(&socket);  // the table's
  return true;
}

}  // namespace

void Socket::reset() {
  numbers.store(0);
  uses.fetch_add(1);
  kind = Kind::Stream;
  family = 0;
  file = stream = 0;
  end_number = 0;
  address = {};
  end.store(nullptr);
  generation.store(sockets::generation());
  forks.store(stream_switch::forks());
  is_inherited.store(false);
  has_urgent_inline.store(false);
  readers.store(0);
  is_never_left.store(false);
  has_waited.store(false);
  additions.store(0);
  habit.begin_again();
  next = nullptr;
}

void Ref::let_go() {
  release(std::exchange(socket_, nullptr));
}

void release(Socket* socket) {
  if (socket == nullptr || socket->references.fetch_sub(1) != 1) return;
  stop_leaving(*socket);
  socket->next = retired.load();
  while (!retired.compare_exchange_weak(socket->next, socket)) continue;
}

bool has_place(int fd) {
  return fd >= 0 && fd < kMostDescriptors;
}

bool is_in_table(int fd) {
  return has_place(fd) && place_of(fd).load(std::memory_order_acquire) != nullptr;
}

// Sockets are never freed, so a pointer that has left the table meanwhile can still be looked at.
Ref find_unchecked(int fd) {
  while (is_in_table(fd)) {
    Socket* const socket = place_of(fd).load();
    if (socket == nullptr) break;
    std::uint32_t references = socket->references.load();
    while (references != 0 &&
           !socket->references.compare_exchange_weak(references, references + 1)) {
      continue;
    }
    if (references == 0) continue;
    Ref found(socket);
    if (place_of(fd).load() == socket) return found;
  }
  return {};
}

Ref find(int fd) {
  Ref socket = find_unchecked(fd);
  if (!socket || still_means(fd, *socket)) return socket;
  if (!in_vfork_child()) remove(fd, *socket);  // there the table is the parent's
  return {};
}

void note_use(int fd) {
  last_use.end(fd, sockets::ticks());
}

Ref find_stream(int fd) {
  Ref socket = find(fd);
  if (socket && socket->kind != Kind::Stream) socket.let_go();
  return socket;
}

Ref make() {
  const Inside inside;
  ::pthread_mutex_lock(&lock);
  reclaim();
  Socket* socket = unused;
  if (socket != nullptr) unused = socket->next;
  ::pthread_mutex_unlock(&lock);
  if (socket == nullptr) socket = new (std::nothrow) Socket;
  if (socket == nullptr) return {};
  socket->reset();
  socket->references.store(1);
  return Ref(socket);
}

bool put(int fd, Ref socket) {
  if (!has_place(fd)) return false;
  socket->numbers.fetch_add(1);
  if (socket->kind == Kind::Stream) stream_count.fetch_add(1);
  Socket* const before = place_of(fd).exchange(socket.take());
  int seen = highest.load();
  while (seen < fd && !highest.compare_exchange_weak(seen, fd)) continue;
  if (before != nullptr) {
    drop_number(*before);
    release(before);
  }
  return true;
}

void copy(int from, int to) {
  Ref socket = find(from);
  if (socket) put(to, std::move(socket));
}

Ref forget(int fd) {
  Ref socket = find(fd);
  if (!socket || in_vfork_child() || !remove(fd, *socket)) return {};
  return socket;
}

int next_in_table(int from) {
  for (int fd = from < 0 ? 0 : from; fd <= highest.load(); ++fd) {
    if (place_of(fd).load() != nullptr) return fd;
  }
  return -1;
}

bool has_any_stream() {
  return stream_count.load(std::memory_order_relaxed) > 0;
}

LeftBy left_by(const Socket& stream) {
  return LeftBy(stream.left.load(std::memory_order_relaxed));
}

void begin_leaving(Socket& stream, LeftBy by) {
  std::uint64_t nobody = 0;
  if (!stream.left.compare_exchange_strong(nobody, by.word())) return;
  lefts_of(by).fetch_add(1);
  lefts.fetch_add(1);
}

bool stop_leaving(Socket& stream) {
  if (!left_by(stream).is_anybody()) return false;
  const LeftBy by(stream.left.exchange(0));
  if (!by.is_anybody()) return false;
  lefts_of(by).fetch_sub(1);
  lefts.fetch_sub(1);
  return true;
}

int left_count() {
  return lefts.load(std::memory_order_relaxed);
}

int left_count(int set) {
  return lefts_in(set).load(std::memory_order_relaxed) +
         lefts_in_any.load(std::memory_order_relaxed);
}

void lock_table() {
  ::pthread_mutex_lock(&lock);
}

void unlock_table() {
  ::pthread_mutex_unlock(&lock);
}

void begin_table_as_child() {
  lock = PTHREAD_MUTEX_INITIALIZER;
}

}  // namespace ib::host_abi::stream_switch
