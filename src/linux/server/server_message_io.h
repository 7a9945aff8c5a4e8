// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One message with descriptors in or out of a SOCK_SEQPACKET socket, without waiting.
#pragma once

#include "linux/server/server_connection.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::os {

enum class Transfer : std::uint8_t {
  Done,
  WouldBlock,
  Ended,  // the peer has gone, or the kernel refused finally
};

// `message` refers to `buffer`. An empty message counts as the end: the kernel reports both alike.
Transfer receive_message(int socket, std::span<std::byte> buffer, ServerMessage& message);

Transfer send_message(int socket, std::span<const std::byte> bytes,
                      const std::array<NativeHandle, 2>& handles);

// Returns whether the peer has unread messages.
bool has_unread_messages(int socket);

PeerProcess peer_of(int socket);

}  // namespace ib::os
