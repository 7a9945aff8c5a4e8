// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/name_claims.h"

#include "linux/process/client_handle.h"
#include "linux/server/memory_file.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

namespace ib::os {

Status NameClaims::claim(std::span<const std::string> names, std::string& reason) {
  std::vector<platform::NativeHandle> claimed;
  for (const std::string& name : names) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // An abstract address begins with a zero byte and has no end but its length.
    IB_ASSERT(name.size() < sizeof address.sun_path);
    name.copy(address.sun_path + 1, name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    auto socket = own_descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return refused("socket", errno, reason);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
      return errno == EADDRINUSE ? Status::AlreadyExists : refused("bind", errno, reason);
    claimed.push_back(std::move(socket));
  }
  std::move(claimed.begin(), claimed.end(), std::back_inserter(sockets_));
  return Status::Ok;
}

}  // namespace ib::os
