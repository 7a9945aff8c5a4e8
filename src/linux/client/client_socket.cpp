// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_socket.h"

#include "linux/process/client_handle.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ib::os {
namespace {

std::string with_errno(const std::string& what, int error) {
  return what + ": " + std::strerror(error);
}

Status refused(int error, const std::string& path, std::string& reason) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      reason = fmt::format(
          "there is no socket at {} ({}): is softibd running? "
          "start the program with `softib run -- CMD`",
          path, kSocketVariable);
      return Status::NotFound;
    case ECONNREFUSED:
      reason = "nobody listens at " + path +
               ": the softibd that made this socket has ended; start a new one with `softib run`";
      return Status::Disconnected;
    case EACCES:
    case EPERM:
      reason =
          "no permission to connect to " + path + ": softibd serves only the user that started it";
      return Status::AccessDenied;
    case EPROTOTYPE:
      reason = path + " is a socket, but not one of softibd's";
      return Status::InvalidParameter;
    default:
      reason = with_errno("cannot connect to softibd at " + path, error);
      return Status::IoError;
  }
}

}  // namespace

Result<platform::NativeHandle> connect_socket(const std::string& path, std::string& reason) {
  if (path.empty()) {
    reason =
        std::string(kSocketVariable) + " is not set: start the program with `softib run -- CMD`";
    return Status::NotFound;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    reason = fmt::format("{}={} is too long: a socket's path has at most {} bytes", kSocketVariable,
                         path, sizeof address.sun_path - 1);
    return Status::InvalidParameter;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  platform::NativeHandle socket =
      own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    const int error = errno;
    reason = with_errno("cannot create a socket", error);
    return no_descriptor(error);
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  while (::connect(socket.get(), generic, sizeof address) != 0) {
    // AF_UNIX connect has no half-way state: it may be repeated after a signal.
    if (errno != EINTR) return refused(errno, path, reason);
  }
  return Result<platform::NativeHandle>(std::move(socket));
}

}  // namespace ib::os
