// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/aside.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::sockets {
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

}  // namespace ib::host_abi::sockets
