// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/command_connection.h"

#include "host_abi/preload/system_calls.h"

#include <atomic>
#include <cstdint>

namespace ib::host_abi::preload {
namespace {

// Descriptor (16 bits), process (22 bits), inode of the socket (the lowest 26 bits). 0: none.
std::atomic<std::uint64_t> kept{0};
constexpr unsigned kInodeBits = 26;
constexpr unsigned kProcessBits = 22;
constexpr int kMostDescriptor = (1 << 16) - 1;

constexpr std::uint64_t bits(std::uint64_t value, unsigned count) {
  return value & ((std::uint64_t{1} << count) - 1);
}

// Returns 0 if the descriptor is not a socket.
std::uint64_t describe(int fd) {
  struct ::statx now;
  if (fd > kMostDescriptor || sys::stat(fd, "", AT_EMPTY_PATH, now) != 0) return 0;
  if (!S_ISSOCK(now.stx_mode)) return 0;
  const auto process = static_cast<std::uint64_t>(sys::process_id());
  return static_cast<std::uint64_t>(fd) << (kProcessBits + kInodeBits) |
         bits(process, kProcessBits) << kInodeBits | bits(now.stx_ino, kInodeBits);
}

// Above the numbers that programs get, if the limit allows it.
int move_up(int fd) {
  for (const int lowest : {1000, 200}) {
    const int moved = sys::fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) continue;
    sys::close(fd);
    return moved;
  }
  return -1;
}

}  // namespace

CommandConnection::CommandConnection() {
  const std::uint64_t word = kept.exchange(0, std::memory_order_acq_rel);
  const auto fd = static_cast<int>(word >> (kProcessBits + kInodeBits));
  if (word != 0 && describe(fd) == word) {
    socket_ = fd;
    was_kept_ = true;
    return;
  }
  socket_ = remote::connect(why_);
}

CommandConnection::~CommandConnection() {
  if (socket_ >= 0) sys::close(socket_);
}

void CommandConnection::keep() {
  if (!was_kept_) {
    const int moved = move_up(socket_);
    if (moved < 0) return;
    socket_ = moved;
  }
  std::uint64_t none = 0;
  const std::uint64_t word = describe(socket_);
  if (word != 0 && kept.compare_exchange_strong(none, word, std::memory_order_acq_rel)) {
    socket_ = -1;
  }
}

void CommandConnection::renew() {
  if (socket_ >= 0) sys::close(socket_);
  was_kept_ = false;
  socket_ = remote::connect(why_);
}

}  // namespace ib::host_abi::preload
