// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sockets that the switch has taken over, by descriptor.
//
// The program's descriptor stays a TCP socket of the kernel: of a listener the one that also takes
// plain TCP, of a connection over RDMA an unconnected one that keeps the number and the options. A
// call that the switch does not see therefore ends with ENOTCONN and never moves a byte.
#pragma once

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
  std::atomic<int> rs{-1};     // the rsocket
  std::atomic<int> event{-1};  // an eventfd
  std::uint32_t generation = 0;
  int family = 0;  // of the program's socket
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
  // Grow with each attempt to read, or to write more than there was room for: an edge of epoll.
  std::atomic<std::uint32_t> reads{0};
  std::atomic<std::uint32_t> full_writes{0};

  // Made by this process, not by its parent.
  bool is_own() const;
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

 private:
  Socket* socket_ = nullptr;
};

inline constexpr int kMostDescriptors = 65536;  // also the most of rsockets

// Returns nothing for descriptors that are not in the table, at the price of a load.
Ref find(int fd);
// A new socket at `fd`, which had none. Returns nothing if `fd` is too large or memory is short.
Ref add(int fd, State state, int family, bool nonblocking);
void copy(int from, int to);
// The descriptor is about to be closed or replaced.
void forget(int fd);
// The first descriptor of the table at or above `from`; -1 if there is none.
int next_in_table(int from);

// Tells all peers that no more is coming.
void shut_down_all();
void release_locks_of_parent();

}  // namespace ib::host_abi::sockets
