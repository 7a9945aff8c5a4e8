// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of the Sockets Direct Protocol [IBA1 annex A4]: a base header (BSDH), for some kinds a
// header of their own, for three of them bytes of the stream.
//
//    byte 0     1       2,3     4..7     8..11   12..15    then
//  |  MID   | flags |  bufs  | length |  mseq | mseq_ack | header of the kind | payload |
//
// The layouts are those that OFED's SDP, its predecessor of 2005 and tshark agree on, and the
// fields have the annex's names. "By inference" marks a rule that none of them shows.
#pragma once

#include "base/big_endian.h"
#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace ib::sdp {

enum class Mid : std::uint8_t {
  Hello = 0x00,  // in the private data of the REQ
  HelloAck = 0x01,
  DisConn = 0x02,  // the sender's half of the stream ends here
  AbortConn = 0x03,
  SendSm = 0x04,  // to a source: send by messages what is advertised
  RdmaWrCompl = 0x05,
  RdmaRdCompl = 0x06,
  ModeChange = 0x07,
  SrcAvailCancel = 0x08,
  SinkAvailCancel = 0x09,
  SinkCancelAck = 0x0a,
  ChRcvBuf = 0x0b,
  ChRcvBufAck = 0x0c,
  SuspComm = 0x0d,
  SuspCommAck = 0x0e,
  SinkAvail = 0xfd,
  SrcAvail = 0xfe,
  Data = 0xff,
};

inline constexpr std::uint8_t kOobPresent = 0x01;  // the last byte of the payload is urgent
inline constexpr std::uint8_t kOobPending = 0x02;  // an urgent byte will follow
inline constexpr std::uint8_t kRequestPipelined = 0x04;

// Modes of one direction of the stream; its source is the master of all changes but one.
enum class Mode : std::uint8_t {
  Buffered = 0,  // messages only
  Combined = 1,  // the first one: one SrcAvail at a time, whose message has at least a byte of it
  Pipelined = 2  // several SrcAvail and SinkAvail, without bytes
};

struct Bsdh {
  std::uint8_t mid = 0;
  std::uint8_t flags = 0;
  Be16 buffers;  // posted receive buffers of the sender
  Be32 length;   // of the whole message
  Be32 sequence;
  Be32 acknowledged;  // the sequence number of the last message that the sender has received
};
static_assert(sizeof(Bsdh) == 16 && alignof(Bsdh) == 1 && std::is_trivially_copyable_v<Bsdh>);
static_assert(offsetof(Bsdh, length) == 4 && offsetof(Bsdh, acknowledged) == 12);

struct SrcAvailHeader {
  Be32 length;  // of the advertised buffer, with those of its first bytes that are in the message
  Be32 rkey;
  Be64 address;
};
struct SinkAvailHeader {
  Be32 length;
  Be32 rkey;
  Be64 address;
  // Messages with payload that the sender has received and that discarded no SinkAvail. A source
  // whose own count differs has sent one since, which discards this SinkAvail.
  Be32 non_discards;
};
// RdmaWrCompl, RdmaRdCompl, ChRcvBuf, ChRcvBufAck.
struct SizeHeader {
  Be32 size;
};
struct ModeChangeHeader {
  std::uint8_t change = 0;  // bit 7: of the receiver's sending half; bits 6..4: the mode
  std::array<std::uint8_t, 3> reserved{};
};
struct SuspCommHeader {
  Be64 service_id;  // where the connection goes on
};
static_assert(sizeof(SrcAvailHeader) == 16 && sizeof(SinkAvailHeader) == 20 &&
              sizeof(SizeHeader) == 4);
static_assert(sizeof(ModeChangeHeader) == 4 && sizeof(SuspCommHeader) == 8);

inline constexpr std::size_t kLongestHeader = sizeof(Bsdh) + sizeof(SinkAvailHeader);

// The meaning of a message. Fields that its kind does not have are 0.
struct Message {
  Mid mid = Mid::Data;
  std::uint8_t flags = 0;
  std::uint16_t buffers = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  std::uint32_t size = 0;  // of SrcAvail, SinkAvail, the completions and buffer sizes
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;  // SuspComm: the service ID
  std::uint32_t non_discards = 0;
  Mode mode = Mode::Buffered;
  bool of_sending_half = false;  // ModeChange: of the receiver's sending half
  std::uint32_t header_length = 0;
  std::uint32_t payload = 0;  // bytes that follow the header
};

// The bytes of a message before its payload.
struct HeaderBytes {
  std::array<std::uint8_t, kLongestHeader> bytes{};
  std::uint32_t length = 0;
};

// Length of the header of a kind, with the BSDH. 0 for an unknown one, Hello and HelloAck
// (hello.h).
std::uint32_t header_length(Mid mid);

// `bytes` is the whole message as it was received. Malformed for lengths that disagree, unknown
// kinds and payload where there is none.
Result<Message> parse(std::span<const std::byte> bytes);

// Uses `payload` for the length field; `header_length` is not read.
HeaderBytes write(const Message& message);

}  // namespace ib::sdp
