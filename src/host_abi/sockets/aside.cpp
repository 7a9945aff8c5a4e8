// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/aside.h"

#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/table.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

constexpr std::size_t kMost = std::size_t{8} << 20;  // as the buffers of TCP grow to together
constexpr std::size_t kAtOnce = 65536;

}  // namespace

Aside::~Aside() {
  std::free(bytes_);
}

char* Aside::room_for(std::size_t count) {
  const std::size_t have = size();
  if (have + count > kMost) return nullptr;
  if (taken_ > 0) std::memmove(bytes_, bytes_ + taken_, have);
  taken_ = 0;
  if (have + count > room_) {
    const std::size_t room = std::max(2 * room_, have + count);
    auto* bytes = static_cast<char*>(std::realloc(bytes_, room));
    if (bytes == nullptr) return nullptr;
    bytes_ = bytes;
    room_ = room;
  }
  return bytes_ + have;
}

std::size_t Aside::take(char* buffer, std::size_t length, bool peeks) {
  const std::size_t count = std::min(length, size());
  std::memcpy(buffer, bytes_ + taken_, count);
  if (peeks) return count;
  taken_ += count;
  if (size_.fetch_sub(count, std::memory_order_relaxed) > count) return count;
  std::free(bytes_);
  bytes_ = nullptr;
  room_ = taken_ = 0;
  return count;
}

SetAside set_aside(Socket& socket) {
  const Rdma* api = loaded_rdma();
  const Alone alone(socket.rs.load());
  if (!alone.valid() || socket.readers.load() > 0) return SetAside::Never;
  char* room = socket.aside.room_for(kAtOnce);
  if (room == nullptr) return SetAside::Never;
  const ssize_t got = api->recv(socket.rs.load(), room, kAtOnce, MSG_DONTWAIT);
  if (got > 0) {
    socket.aside.add(static_cast<std::size_t>(got));
    wake_sleepers();  // one of them may wait for these bytes
    return SetAside::Some;
  }
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? SetAside::NoneYet : SetAside::Never;
}

}  // namespace ib::host_abi::sockets
