// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sockets that the switch has taken over, by descriptor.
//
// The program's descriptor stays a TCP socket of the kernel: of a listener the one that also takes
// plain TCP, of a connection over RDMA an unconnected one that keeps the number and the options. A
// call that the switch does not see therefore ends with ENOTCONN and never moves a byte.
#pragma once

#include "host_abi/sockets/aside.h"
#include "host_abi/sockets/common/file_identity.h"

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace ib::host_abi::sockets {

enum class State : std::uint8_t {
  Free,
  Plain,       // TCP after all; the entry only remains until its last descriptor is closed
  Listening,   // `rs` < 0: not over RDMA (yet)
  Connecting,  // a thread of ours connects; `event` is readable when it has ended
  Connected,
};

struct Socket {
  std::atomic<std::uint32_t> references{0};
  std::atomic<State> state{State::Free};
  std::atomic<int> rs{-1};  // the rsocket
  OwnDescriptor event;      // an eventfd; does not change in the table
  std::uint32_t generation = 0;
  std::uint64_t file = 0;  // the program's, whose descriptors these are (file_identity.h)
  int family = 0;          // of the program's socket
  int backlog = 0;
  std::atomic<std::uint32_t> descriptors{0};
  std::atomic<bool> tried{false};  // Listening: do not try again
  std::atomic<bool> nonblocking{false};
  std::atomic<bool> read_shut{false};
  std::atomic<bool> write_shut{false};
  std::atomic<bool> lost{false};  // the connection has ended, and the peer has not said so
  // An error has been reported to a writer, or to a reader.
  std::atomic<bool> broken{false};
  std::atomic<bool> end_reported{false};
  std::atomic<int> error{0};  // SO_ERROR
  Aside aside;
  std::atomic<int> readers{0};  // threads that wait in a call to read it
  // Grow with each attempt to read or accept, or to write more than there was room for: an edge of
  // epoll.
  std::atomic<std::uint32_t> reads{0};
  std::atomic<std::uint32_t> full_writes{0};
  // Sleeps in epoll sets that leave out what has been reported.
  std::atomic<std::uint32_t> without_edge{0};

  void note_read() { note(reads); }
  void note_full_write() { note(full_writes); }
  // References that await their end, and the next such socket (closed_numbers.h).
  std::atomic<std::uint32_t> given_away{0};
  Socket* next_given_away = nullptr;

  // Made by this process, not by its parent.
  bool is_own() const;

 private:
  void note(std::atomic<std::uint32_t>& count);
};

// Keeps a socket alive. A descriptor that is closed meanwhile ends with the last reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(Socket* socket) : socket_(socket) {}
  Ref(Ref&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  Ref(const Ref& other);
  Ref& operator=(const Ref&) = delete;
  ~Ref();
  explicit operator bool() const { return socket_ != nullptr; }
  Socket* operator->() const { return socket_; }
  Socket& operator*() const { return *socket_; }
  // Leaves the reference to the caller.
  Socket* take() { return std::exchange(socket_, nullptr); }

 private:
  Socket* socket_ = nullptr;
};

inline constexpr int kMostDescriptors = 65536;  // also the most of rsockets

// Returns nothing for descriptors that are not in the table, at the price of a load. Of the others
// the kernel says whether they are still the same files: one that the program has closed without
// libc leaves the table.
Ref find(int fd);
// As find(), without that look: for what is only watched, and is found again before it is used.
Ref find_unchecked(int fd);
// A new socket at `fd`. Ends what the table has of an earlier file with that number. Returns
// nothing if `fd` is too large or memory is short.
Ref add(int fd, State state, int family, bool nonblocking, OwnDescriptor event = {});
void copy(int from, int to);
// The descriptor is about to be closed or replaced.
void forget(int fd);
bool is_in_table(int fd);
// The first descriptor of the table at or above `from`; -1 if there is none.
int next_in_table(int from);

// Tells all peers that no more is coming.
void shut_down_all();
void release_locks_of_parent();

}  // namespace ib::host_abi::sockets
