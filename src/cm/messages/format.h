// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Common to the messages of the class CM [IBA1 16.7]: the header's values, the 232 bytes
// behind it, fields of less than a byte, additional information and private data.
//
// Each message has two types: its bytes (Wire), and its meaning. encode() and decode_*() are the
// only ways from one to the other. Fields that are narrower than their word have its high bits.
#pragma once

#include "cm/types.h"
#include "mad/header.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ib::cm {

inline constexpr std::uint8_t kCmClass = 0x07;
inline constexpr std::uint8_t kCmClassVersion = 2;
inline constexpr std::uint8_t kSend = 0x03;  // the method of all messages

enum class Attribute : std::uint16_t {
  ClassPortInfo = 0x0001,
  Req = 0x0010,
  Mra = 0x0011,
  Rej = 0x0012,
  Rep = 0x0013,
  Rtu = 0x0014,
  Dreq = 0x0015,
  Drep = 0x0016,
  SidrReq = 0x0017,
  SidrRep = 0x0018,
  Lap = 0x0019,
  Apr = 0x001a,
};

inline constexpr std::size_t kMessageBytes = mad::kMadSize - sizeof(mad::MadHeader);

// Bits of a byte, counted from the most significant one as the tables of the specification do.
constexpr std::uint8_t take_bits(std::uint8_t byte, unsigned first, unsigned width) {
  return static_cast<std::uint8_t>((byte >> (8 - first - width)) & ((1u << width) - 1));
}
constexpr std::uint8_t put_bits(std::uint32_t value, unsigned first, unsigned width) {
  return static_cast<std::uint8_t>((value & ((1u << width) - 1)) << (8 - first - width));
}
static_assert(put_bits(0x1f, 0, 5) == 0xf8 && put_bits(1, 4, 1) == 0x08);
static_assert(take_bits(0xf8, 0, 5) == 0x1f && take_bits(0x08, 4, 1) == 1);

template <class Wire>
concept MessageWire = sizeof(Wire) == kMessageBytes &&
                      alignof(Wire) == 1 && std::is_trivially_copyable_v<Wire>;

template <MessageWire Wire>
Wire wire_of(const mad::Mad& mad) {
  Wire wire;
  std::memcpy(&wire, mad.data() + sizeof(mad::MadHeader), sizeof wire);
  return wire;
}

using mad::header_of;

template <MessageWire Wire>
mad::Mad mad_of(Attribute attribute, std::uint64_t transaction_id, const Wire& wire,
                std::uint32_t modifier = 0) {
  mad::MadHeader header;
  header.base_version = mad::kBaseVersion;
  header.mgmt_class = kCmClass;
  header.class_version = kCmClassVersion;
  header.method = kSend;
  header.transaction_id = transaction_id;
  header.attribute = static_cast<std::uint16_t>(attribute);
  header.modifier = modifier;
  mad::Mad mad;
  std::memcpy(mad.data(), &header, sizeof header);
  std::memcpy(mad.data() + sizeof header, &wire, sizeof wire);
  return mad;
}

// Bytes that do not fit their field are cut: the engine has refused them before.
template <std::size_t N, std::size_t M>
void put_bytes(std::array<std::uint8_t, N>& field, const Bytes<M>& bytes) {
  const auto view = bytes.view();
  std::copy_n(view.begin(), std::min(view.size(), N), field.begin());
}

// The first fields of every message of a connection. A message that answers another one has its
// transaction ID.
struct Ids {
  std::uint64_t transaction_id = 0;
  std::uint32_t local = 0;  // of the message's sender
  std::uint32_t remote = 0;
  friend bool operator==(const Ids&, const Ids&) = default;
};

}  // namespace ib::cm
