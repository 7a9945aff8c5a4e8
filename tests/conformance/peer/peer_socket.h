// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Commands and replies over a stream socket: a length, a number (command or status), the bytes.
#pragma once

#include "peer/peer_protocol.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

namespace ib::conformance {

struct Frame {
  std::uint32_t number = 0;
  std::uint32_t reason_length = 0;
  std::uint64_t length = 0;
};

inline bool write_all(int socket, const void* from, std::size_t n) {
  const auto* at = static_cast<const std::byte*>(from);
  while (n > 0) {
    const ssize_t sent = ::send(socket, at, n, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    n -= static_cast<std::size_t>(sent);
  }
  return true;
}

inline bool read_all(int socket, void* to, std::size_t n) {
  auto* at = static_cast<std::byte*>(to);
  while (n > 0) {
    const ssize_t got = ::recv(socket, at, n, 0);
    if (got <= 0) return false;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

inline bool send_frame(int socket, std::uint32_t number, const std::string& reason,
                       const std::vector<std::byte>& bytes) {
  const Frame frame{number, static_cast<std::uint32_t>(reason.size()), bytes.size()};
  return write_all(socket, &frame, sizeof frame) &&
         write_all(socket, reason.data(), reason.size()) &&
         write_all(socket, bytes.data(), bytes.size());
}

inline bool receive_frame(int socket, std::uint32_t& number, std::string& reason,
                          Message& message) {
  Frame frame;
  if (!read_all(socket, &frame, sizeof frame)) return false;
  number = frame.number;
  reason.resize(frame.reason_length);
  std::vector<std::byte> bytes(frame.length);
  if (!read_all(socket, reason.data(), reason.size()) ||
      !read_all(socket, bytes.data(), bytes.size())) {
    return false;
  }
  message = Message(std::move(bytes));
  return true;
}

inline bool send_command(int socket, Command command, const Message& in) {
  return send_frame(socket, static_cast<std::uint32_t>(command), {}, in.bytes());
}
inline bool send_reply(int socket, const Reply& reply) {
  return send_frame(socket, static_cast<std::uint32_t>(reply.status), reply.reason,
                    reply.out.bytes());
}
inline std::optional<Reply> receive_reply(int socket) {
  Reply reply;
  std::uint32_t status = 0;
  if (!receive_frame(socket, status, reply.reason, reply.out)) return std::nullopt;
  reply.status = static_cast<Status>(status);
  return reply;
}

}  // namespace ib::conformance
