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
std::uint64_t describe(int fd, int process) {
  struct ::statx now;
  if (fd > kMostDescriptor || sys::stat(fd, "", AT_EMPTY_PATH, now) != 0) return 0;
  if (!S_ISSOCK(now.stx_mode)) return 0;
  return static_cast<std::uint64_t>(fd) << (kProcessBits + kInodeBits) |
         bits(static_cast<std::uint64_t>(process), kProcessBits) << kInodeBits |
         bits(now.stx_ino, kInodeBits);
}

}  // namespace

CommandConnection::CommandConnection(int process) : process_(process) {
  const std::uint64_t word = kept.exchange(0, std::memory_order_acq_rel);
  const auto fd = static_cast<int>(word >> (kProcessBits + kInodeBits));
  if (word != 0 && describe(fd, process) == word) {
    socket_ = fd;
    was_kept_ = true;
    word_ = word;
    return;
  }
  socket_ = remote::connect(why_);
}

CommandConnection::~CommandConnection() {
  if (socket_ >= 0) sys::close(socket_);
}

void CommandConnection::keep() {
  if (!was_kept_) {
    const int moved = sys::duplicate_high(socket_);
    if (moved < 0) return;
    sys::close(socket_);
    socket_ = moved;
    word_ = describe(socket_, process_);
  }
  // One that was kept is as it was, or the next check of it fails.
  std::uint64_t none = 0;
  if (word_ != 0 && kept.compare_exchange_strong(none, word_, std::memory_order_acq_rel)) {
    socket_ = -1;
  }
}

void CommandConnection::renew() {
  if (socket_ >= 0) sys::close(socket_);
  was_kept_ = false;
  socket_ = remote::connect(why_);
}

}  // namespace ib::host_abi::preload
