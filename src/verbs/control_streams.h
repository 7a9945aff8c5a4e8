// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of the control interface (verbs/control.h) that is about streams: TCP connections of
// programs whose bytes go through SDP (docs/design/0030). Fixed layout, the same on 32 and 64 bit.
//
// A stream has two ends in device memory (streams/shared_end.h). A program holds one by a *link*, a
// descriptor that it has instead of its TCP socket: one end of a pair of AF_UNIX SOCK_SEQPACKET
// sockets, whose other end the peer holds. The name of a link (stream_link_name()) says which end
// it is. An end lives until its link is closed everywhere.
#pragma once

#include "verbs/control_layout.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace ib::verbs::control {

// Codes of file 0; the client is attached, and its node is the one that it attached to.
enum class StreamCode : std::uint32_t {
  // StreamListenIn -> -. A TCP socket of the client listens there: connections of programs of the
  // fabric to this address of the node become streams from now on, whichever process accepts them.
  // ! InvalidParameter: no port
  Listen = 112,
  // StreamListenIn -> -. Nobody listens there any more. Ok also if nobody did.
  Unlisten = 113,
  // StreamConnectIn -> StreamOut; brings fd: the TCP socket, which does not block; fd: the link.
  // softibd connects the TCP socket, so that the listener's backlog and its accept() are those of
  // TCP, then makes the stream. Unless Ok, the program goes on with the TCP socket, which may be
  // connected by then, or be connecting: its own connect() tells.
  // ! NotFound: nobody of the fabric listens there; DeviceBusy: TCP has not connected at once;
  // ! IoError: TCP refuses; anything else: no stream can be made (a port is down ...)
  Connect = 114,
  // StreamAcceptIn -> StreamOut; fd: the link. A TCP connection with these names was accepted.
  // Pends while the stream is being made. Ok once for each stream.
  // ! NotFound: it is no stream, but stays TCP
  Accept = 115,
  // StreamNameIn -> StreamOut. Of a link that the process has inherited or been sent.
  // ! NotFound: no such end
  Open = 116,
  // StreamNameIn -> StreamRingOut: memory for a send ring of kStreamLargeRing bytes, which lives
  // as long as the end. The same if it has one already.  ! NotFound, InsufficientResources
  Grow = 117,
};
constexpr bool is_stream(std::uint32_t code) {
  return code >= static_cast<std::uint32_t>(StreamCode::Listen) &&
         code <= static_cast<std::uint32_t>(StreamCode::Grow);
}

inline constexpr std::uint32_t kStreamLargeRing = 4u << 20;

// Of a TCP socket. IPv4 is mapped: ::ffff:0:0/96.
struct StreamAddress {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  std::uint16_t reserved = 0;
  std::uint32_t scope = 0;  // of a link-local IPv6 address
  friend bool operator==(const StreamAddress&, const StreamAddress&) = default;
};
struct StreamListenIn {
  StreamAddress local;  // maybe a wildcard
};
struct StreamConnectIn {
  StreamAddress remote;
};
struct StreamAcceptIn {
  StreamAddress local;  // of the accepted socket
  StreamAddress remote;
};
// `end` 0: of the program that has connected; 1: of the one that has accepted.
struct StreamNameIn {
  std::uint64_t stream = 0;
  std::uint32_t end = 0;
  std::uint32_t reserved = 0;
};
struct StreamOut {
  std::uint64_t stream = 0;  // never the same twice
  std::uint64_t offset = 0;  // of its streams::SharedEnd in device memory
  std::uint32_t end = 0;
  std::uint32_t reserved = 0;
  StreamAddress local;
  StreamAddress remote;
};
struct StreamRingOut {
  std::uint64_t offset = 0;  // in device memory
  std::uint64_t length = 0;
};

// The name of a link is abstract: a zero byte, this, the number of the softibd as 16 hex digits,
// '.', the stream as 16 hex digits, '.', the end as one digit.
inline constexpr std::string_view kStreamLinkPrefix = "softib-stream.";

IB_SIZE(StreamAddress, 24);
IB_SIZE(StreamListenIn, 24);
IB_SIZE(StreamConnectIn, 24);
IB_SIZE(StreamAcceptIn, 48);
IB_SIZE(StreamNameIn, 16);
IB_SIZE(StreamOut, 72);
IB_SIZE(StreamRingOut, 16);
IB_FIELD(StreamOut, stream, 0, 8);
IB_FIELD(StreamOut, offset, 8, 8);
IB_FIELD(StreamOut, end, 16, 4);
IB_FIELD(StreamOut, local, 24, 24);
IB_FIELD(StreamOut, remote, 48, 24);

}  // namespace ib::verbs::control
