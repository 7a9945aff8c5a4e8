// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Hello and HelloAck as they lie in private data.
#include "ulp/sdp/hello.h"

#include "base/big_endian.h"
#include "ulp/sdp/messages.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace ib::sdp {
namespace {

struct HelloBytes {
  Bsdh base;
  std::uint8_t version = 0;  // major, minor
  std::uint8_t ip = 0;       // IP version, capabilities
  std::uint8_t reserved1 = 0;
  std::uint8_t max_adverts = 0;
  Be32 desired_remote_size;
  Be32 local_size;
  Be16 port;
  Be16 reserved2;
  std::array<std::uint8_t, 16> source{};
  std::array<std::uint8_t, 16> destination{};
  Be16 reserved3;
  Be16 extended_adverts;
  std::array<std::uint8_t, 24> reserved4{};
};
static_assert(sizeof(HelloBytes) == kHelloBytes && std::is_trivially_copyable_v<HelloBytes>);
static_assert(offsetof(HelloBytes, source) == 32 && offsetof(HelloBytes, extended_adverts) == 66);

struct HelloAckBytes {
  Bsdh base;
  std::uint8_t version = 0;
  std::uint8_t reserved1 = 0;
  std::uint8_t reserved2 = 0;
  std::uint8_t max_adverts = 0;
  Be32 actual_size;
  std::array<std::uint8_t, 172> reserved3{};
};
static_assert(sizeof(HelloAckBytes) == kHelloAckBytes &&
              offsetof(HelloAckBytes, actual_size) == 20);

constexpr unsigned major(std::uint8_t version) {
  return version >> 4;
}

bool holds_a_byte(std::uint32_t buffer_size) {
  return buffer_size > kLongestHeader;
}

// The communication manager pads private data, so more bytes than the structure has are no fault.
// OFED's length field of the BSDH counts the whole private data, others the message: it is not
// checked.
template <class Bytes>
Result<Bytes> take(std::span<const std::byte> data, Mid mid) {
  if (data.size() < sizeof(Bytes)) return Status::Malformed;
  Bytes bytes;
  std::memcpy(&bytes, data.data(), sizeof bytes);
  if (bytes.base.mid != static_cast<std::uint8_t>(mid)) return Status::Malformed;
  if (major(bytes.version) != major(kVersion)) return Status::NotSupported;
  if (bytes.max_adverts == 0) return Status::Malformed;
  return bytes;
}

Bsdh base_of(Mid mid, std::uint16_t buffers, std::size_t length) {
  return Bsdh{static_cast<std::uint8_t>(mid),     0,  buffers,
              static_cast<std::uint32_t>(length), 0u, 0u};
}

}  // namespace

Result<Hello> parse_hello(std::span<const std::byte> private_data) {
  IB_TRY(bytes, take<HelloBytes>(private_data, Mid::Hello));
  Hello hello;
  hello.buffers = bytes.base.buffers;
  hello.ip_version = bytes.ip >> 4;
  hello.capabilities = bytes.ip & 0x0f;
  hello.max_adverts = bytes.max_adverts;
  hello.desired_remote_size = bytes.desired_remote_size;
  hello.local_size = bytes.local_size;
  hello.port = bytes.port;
  hello.source = bytes.source;
  hello.destination = bytes.destination;
  hello.extended_adverts = bytes.extended_adverts;
  if (hello.ip_version != 4 && hello.ip_version != 6) return Status::Malformed;
  if (!holds_a_byte(hello.local_size)) return Status::Malformed;
  return hello;
}

Result<HelloAck> parse_hello_ack(std::span<const std::byte> private_data) {
  IB_TRY(bytes, take<HelloAckBytes>(private_data, Mid::HelloAck));
  if (!holds_a_byte(bytes.actual_size)) return Status::Malformed;
  return HelloAck{bytes.base.buffers, bytes.max_adverts, bytes.actual_size};
}

std::array<std::byte, kHelloBytes> write(const Hello& hello) {
  HelloBytes bytes;
  bytes.base = base_of(Mid::Hello, hello.buffers, kHelloBytes);
  bytes.version = kVersion;
  bytes.ip =
      static_cast<std::uint8_t>(unsigned{hello.ip_version} << 4 | (hello.capabilities & 0x0fu));
  bytes.max_adverts = hello.max_adverts;
  bytes.desired_remote_size = hello.desired_remote_size;
  bytes.local_size = hello.local_size;
  bytes.port = hello.port;
  bytes.source = hello.source;
  bytes.destination = hello.destination;
  bytes.extended_adverts = hello.extended_adverts;
  return std::bit_cast<std::array<std::byte, kHelloBytes>>(bytes);
}

std::array<std::byte, kHelloAckBytes> write(const HelloAck& ack) {
  HelloAckBytes bytes;
  bytes.base = base_of(Mid::HelloAck, ack.buffers, kHelloAckBytes);
  bytes.version = kVersion;
  bytes.max_adverts = ack.max_adverts;
  bytes.actual_size = ack.actual_size;
  return std::bit_cast<std::array<std::byte, kHelloAckBytes>>(bytes);
}

}  // namespace ib::sdp
