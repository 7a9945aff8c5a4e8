// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hello and HelloAck: the first messages of a connection, in the private data of the communication
// manager's REQ and REP [IBA1 annex A4]. Their sequence number is 0; the first message over the
// queue pair has 1.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ib::sdp {

inline constexpr std::uint8_t kVersion = 0x22;  // major 2, minor 2, as OFED has it

// The service ID of a TCP port number.
inline constexpr std::uint64_t service_id(std::uint16_t port) {
  return 0x10000u | std::uint64_t{port};
}

inline constexpr std::size_t kHelloBytes = 92;      // of the 92 that a REQ has for private data
inline constexpr std::size_t kHelloAckBytes = 196;  // of the 196 of a REP

inline constexpr std::uint8_t kExtendedAdverts = 0x02;  // extended_adverts counts, not max_adverts

struct Hello {
  std::uint16_t buffers = 0;      // posted receive buffers
  std::uint8_t ip_version = 4;    // 4 or 6
  std::uint8_t capabilities = 0;  // bit 0: takes SEND with invalidate; bit 1: kExtendedAdverts
  std::uint8_t max_adverts = 1;   // unanswered advertisements that the sender accepts; at least 1
  std::uint32_t desired_remote_size = 0;  // of the peer's receive buffers
  std::uint32_t local_size = 0;           // of the sender's receive buffers, header included
  std::uint16_t port = 0;                 // of the sender
  std::array<std::uint8_t, 16> source{};  // an IPv4 address is in the last 4 bytes
  std::array<std::uint8_t, 16> destination{};
  std::uint16_t extended_adverts = 0;
};

struct HelloAck {
  std::uint16_t buffers = 0;
  std::uint8_t max_adverts = 1;
  std::uint32_t actual_size = 0;  // of the sender's receive buffers, header included
};

// Malformed: not this message, too short, or no sense in it (no advertisements, buffers too small
// for a header). NotSupported: another major version.
Result<Hello> parse_hello(std::span<const std::byte> private_data);
Result<HelloAck> parse_hello_ack(std::span<const std::byte> private_data);

std::array<std::byte, kHelloBytes> write(const Hello& hello);
std::array<std::byte, kHelloAckBytes> write(const HelloAck& ack);

}  // namespace ib::sdp
