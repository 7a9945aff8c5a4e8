// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes of a connection that have been read ahead of the program. Where both sides write more than
// rsockets have room for before they read, as they may over TCP, a writer that waits sets aside
// what comes, and so gives the other side room.
#pragma once

#include <atomic>
#include <cstddef>

namespace ib::host_abi::sockets {

// Changes under the lock of the rsocket (Alone).
class Aside {
 public:
  static constexpr std::size_t kMost = std::size_t{8} << 20;  // as buffers of TCP grow to, together

  Aside() = default;
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Relaxed: a reader of the bytes has the lock; others look after they had it (look_at()), or for
  // a guess.
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Returns room for the next `count` bytes, or nullptr if there would be too many or memory is
  // short.
  char* room_for(std::size_t count);
  void add(std::size_t count) { size_.fetch_add(count, std::memory_order_relaxed); }
  // The first of them, `length` at most. They stay if the program only peeks.
  std::size_t take(char* buffer, std::size_t length, bool peeks);

 private:
  char* bytes_ = nullptr;
  std::size_t room_ = 0;
  std::size_t taken_ = 0;  // before the first
  std::atomic<std::size_t> size_{0};
};

}  // namespace ib::host_abi::sockets
