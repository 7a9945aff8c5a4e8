// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of the reliable multi-packet protocol [IBA1 13.6.2], behind the common one.
#pragma once

#include "mad/header.h"
#include "mad/mgmt_class.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ib::mad {

enum class RmppType : std::uint8_t { None = 0, Data = 1, Ack = 2, Stop = 3, Abort = 4 };

// [13.6.2.1 table 171]
enum class RmppStatus : std::uint8_t {
  Normal = 0,
  Resources = 1,            // STOP: the receiver has no room
  TimeTooLong = 118,        // ABORT, as all that follow
  InconsistentLast = 119,   // LAST, or the payload length
  InconsistentFirst = 120,  // FIRST, or the segment number
  BadType = 121,
  WindowTooSmall = 122,  // the new window ends before the segment
  SegmentTooBig = 123,
  IllegalStatus = 124,
  UnsupportedVersion = 125,
  TooManyRetries = 126,
  Unspecified = 127,
};
inline constexpr std::uint8_t kFirstAbortStatus = 118;

namespace rmpp_flag {
inline constexpr std::uint8_t kActive = 1;
inline constexpr std::uint8_t kFirst = 2;
inline constexpr std::uint8_t kLast = 4;
}  // namespace rmpp_flag

inline constexpr std::uint8_t kRmppVersion = 1;
inline constexpr std::uint8_t kNoResponseTime = 0x1f;

struct RmppHeader {
  std::uint8_t version = 0;
  std::uint8_t type = 0;
  std::uint8_t time_flags = 0;  // RRespTime (5), flags (3)
  std::uint8_t status = 0;
  Be32 segment;        // DATA, ACK
  Be32 length_window;  // DATA: payload length, ACK: last segment of the new window

  std::uint8_t flags() const { return time_flags & 7; }
  bool has(std::uint8_t flag) const { return (time_flags & flag) != 0; }
  std::uint8_t response_time() const { return time_flags >> 3; }
};
static_assert(sizeof(RmppHeader) == 12 && alignof(RmppHeader) == 1);
static_assert(kRmppOffset + sizeof(RmppHeader) == kRmppDataOffset);

// The payload of a packet, as lengths count it: all behind its RMPP header, the header of the class
// included.
inline constexpr std::size_t kRmppPayload = kMadSize - kRmppDataOffset;

// The MAD is whole.
inline RmppHeader rmpp_header_of(std::span<const std::byte> mad) {
  RmppHeader header;
  std::memcpy(&header, mad.data() + kRmppOffset, sizeof header);
  return header;
}
inline void set_rmpp_header(Mad& mad, const RmppHeader& header) {
  std::memcpy(mad.data() + kRmppOffset, &header, sizeof header);
}
// A packet of a message of several packets, or about one.
inline bool is_rmpp(std::span<const std::byte> mad) {
  const auto mgmt_class = std::to_integer<std::uint8_t>(mad[offsetof(MadHeader, mgmt_class)]);
  return has_rmpp(mgmt_class) && rmpp_header_of(mad).has(rmpp_flag::kActive);
}

const char* rmpp_status_text(RmppStatus status);

}  // namespace ib::mad
