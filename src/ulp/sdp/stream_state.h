// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a stream: one struct without pointers, which lies in memory that several processes
// share (stream.h has the calls). The holder of its lock goes on with it: a forked
// child, or a relay after its owner has died.
//
// Its layout is the same in 32-bit and 64-bit programs. Flags are bytes of 0 or 1. The processes of
// a stream trust each other, yet no content may lead outside of the struct or of the areas of the
// caller: positions are masked, and offsets are taken modulo the size of their area, where they are
// used.
#pragma once

#include "base/time.h"
#include "ulp/sdp/credits.h"
#include "ulp/sdp/messages.h"
#include "ulp/sdp/ring.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ib::sdp {

inline constexpr std::uint32_t kMostReceiveBuffers = 64;
inline constexpr std::uint32_t kLeastReceiveBuffers = 8;
inline constexpr std::uint32_t kMostSendSlots = 64;
inline constexpr std::uint32_t kMostAdverts = 16;

struct Settings {
  std::int64_t advert_timeout_ns =
      1'000'000'000;  // a SrcAvail that is not answered is taken back; its data are copied
  std::int64_t close_timeout_ns = 60'000'000'000;  // wait for the peer's DisConn after close()
  std::uint32_t send_ring_bytes = 256 * 1024;
  std::uint32_t receive_buffer_bytes = 8192;  // of each receive buffer, header included
  std::uint32_t receive_buffers =
      32;                         // that this stream holds at most: posted, or with unread bytes
  std::uint32_t send_slots = 32;  // work requests in the send queue at most
  std::uint32_t direct_threshold =
      32 * 1024;                    // shorter direct writes are not advertised but copied
  std::uint32_t inlined_bytes = 1;  // of an advertised buffer, in the SrcAvail itself (Combined)
  std::uint32_t max_adverts = 4;    // of the peer, that are accepted
  std::uint32_t pipelined =
      1;  // 0 or 1: may leave the Combined mode for the Pipelined one by itself
};
static_assert(sizeof(Settings) == 48);

// How far an exchange with the peer has come.
enum class Step : std::uint8_t { None, Wanted, Sent, Answered };

enum class State : std::uint8_t {
  Idle,             // no Hello yet
  Connecting,       // Hello was sent
  Accepting,        // HelloAck was sent; nothing may be sent until the peer is known to have it
  Established,      // both halves are open
  DisConnSent,      // ours is closed, the peer's is open
  DisConnReceived,  // the peer's is closed, ours is open
  Closing,          // both are closed; work requests are out
  Aborting,         // an Abort is to be sent or on its way
  // No message is sent or accepted in these.
  Closed,   // both halves ended in order
  Aborted,  // by this end
  Reset,    // by the peer's Abort
  Lost,     // the queue pair or the peer's process ended, without a word
};

// Bits of take_events().
enum Event : std::uint32_t {
  kReadable = 1u << 0,       // bytes, or an advertisement of the peer
  kWritable = 1u << 1,       // room in the send ring
  kPeerClosed = 1u << 2,     // the stream ends after what is readable
  kReset = 1u << 3,          // by the peer: ECONNRESET
  kLost = 1u << 4,           // ECONNRESET, too
  kUrgentPending = 1u << 5,  // an urgent byte will follow
  kUrgent = 1u << 6,         // it is here
  kResult = 1u << 7,         // take_result() has something
  kFinished = 1u << 8,       // the connection is to be taken down now; no post comes any more
  kResizeAsked =
      1u
      << 9,  // the peer wants receive buffers of receiving.asked_size; answer_resize() must follow
  kRemoteResized = 1u << 10,  // the peer has answered request_remote_size()
  kSuspended = 1u << 11,      // both ends are silent; resume() follows, over another queue pair
  kModeChanged = 1u << 12,
  kProtocolError = 1u << 13,  // the peer broke a rule; the stream is aborted
};

// A part of what is to be sent, in the order of the stream.
struct alignas(8) SendItem {
  enum Kind : std::uint8_t { Bytes, Direct };
  enum Phase : std::uint8_t { Waiting, Advertised, Copying };
  std::uint64_t id = 0;       // Direct: the caller's
  std::uint64_t address = 0;  // Direct: that the peer reads from
  std::uint64_t length = 0;
  std::uint64_t sent = 0;  // in messages, written to the peer, or read by it
  std::uint32_t rkey = 0;
  std::uint32_t in_flight = 0;  // work requests with bytes of it
  Kind kind = Bytes;
  Phase phase = Waiting;
  std::uint8_t urgent = 0;     // its last byte is
  std::uint8_t withdrawn = 0;  // by cancel_write()
  std::uint32_t spare = 0;

  std::uint64_t left() const { return length > sent ? length - sent : 0; }
};
static_assert(sizeof(SendItem) == 48);

// A buffer of the peer that may be written to.
struct alignas(8) SinkAdvert {
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint32_t written = 0;
  std::uint32_t spare = 0;
};
static_assert(sizeof(SinkAdvert) == 24);

struct alignas(8) SendHalf {
  std::uint64_t ring_written = 0;       // bytes that were ever put into the send ring
  std::uint64_t ring_sent = 0;          // that work requests have
  std::uint64_t ring_freed = 0;         // whose work requests have completed
  std::int64_t advert_deadline_ns = 0;  // 0: none
  Ring<SendItem, 16> items;
  Ring<SinkAdvert, kMostAdverts> sinks;
  std::uint32_t advertised = 0;  // the first items, which the peer may read from
  std::uint32_t max_adverts = 1;
  std::uint32_t remote_size = 0;          // of the peer's receive buffers, header included
  std::uint32_t remote_size_asked = 0;    // 0: no request is unanswered
  std::uint32_t non_discards = 0;         // messages with payload that discarded no SinkAvail
  std::uint32_t non_discards_before = 0;  // when the mode was changed last
  std::uint32_t mode_sequence = 0;        // of the message that changed it
  std::uint32_t unsignaled_bytes = 0;     // of the ring, since the last post with a completion
  Mode mode = Mode::Combined;
  Mode mode_wanted = Mode::Combined;
  Step mode_change = Step::None;  // Sent: the peer may not have seen it
  Step cancel = Step::None;       // SrcAvailCancel
  std::uint8_t is_shut = 0;
  std::uint8_t corked = 0;
  std::array<std::uint8_t, 2> spare{};
};

// A part of what was received, in the order of the stream.
struct alignas(8) ReceiveItem {
  enum Kind : std::uint8_t { Bytes, Source };
  std::uint64_t address = 0;  // Source: of the rest that is not read
  std::uint32_t rkey = 0;
  std::uint32_t buffer = 0;  // Bytes: index of the receive buffer
  std::uint32_t offset = 0;
  std::uint32_t length = 0;  // that is left
  Kind kind = Bytes;
  std::uint8_t urgent = 0;  // its last byte is
  std::array<std::uint8_t, 6> spare{};
};
static_assert(sizeof(ReceiveItem) == 32);

// A buffer of the program that the stream's next bytes may be put into without a copy.
struct alignas(8) DirectRead {
  enum Phase : std::uint8_t { None, Waiting, Reading, Advertised };
  std::uint64_t id = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint32_t reading = 0;  // bytes of the RDMA READ that is out
  Phase phase = None;
  Step cancel = Step::None;  // SinkAvailCancel
  std::uint16_t spare = 0;
};
static_assert(sizeof(DirectRead) == 32);

struct alignas(8) ReceiveHalf {
  DirectRead read;
  std::uint64_t readable = 0;  // bytes of all items
  Ring<ReceiveItem, 128> items;
  Ring<std::uint32_t, 128> free;  // receive buffers to be posted again
  std::uint32_t buffer_bytes = 0;
  std::uint32_t asked_size = 0;  // by the peer; 0: no request is unanswered
  std::uint32_t non_discards = 0;
  std::uint32_t copies_sequence = 0;  // of the last SendSm
  Step copies = Step::None;           // SendSm. Until the peer has it, its SrcAvails are void
  Step cancel = Step::None;           // Wanted: a SrcAvailCancel waits for the end of a READ
  Step pipelined_request = Step::None;
  Mode mode = Mode::Combined;
  std::uint32_t spare = 0;
};

// A message without bytes of the stream that waits to be sent.
struct Control {
  std::uint32_t value = 0;
  Mid mid = Mid::Data;
  std::array<std::uint8_t, 3> spare{};
};

// A work request that has not completed.
struct InFlight {
  enum Kind : std::uint8_t { Send, Read, Write };
  std::uint32_t ring_bytes = 0;
  std::uint32_t item = 0;  // position of the direct item, if is_direct
  Kind kind = Send;
  Mid mid = Mid::Data;
  std::uint8_t is_direct = 0;
  std::uint8_t spare = 0;
};

// The end of a direct write or read.
struct alignas(8) DirectResult {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;  // from the start of its buffer
  std::uint32_t is_read = 0;
  std::uint32_t spare = 0;
};

struct alignas(8) Stream {
  Settings settings;
  std::uint64_t next_tag = 0;          // of the next work request
  std::uint64_t oldest_tag = 0;        // that has not completed
  std::int64_t close_deadline_ns = 0;  // 0: none
  std::uint64_t suspend_service = 0;   // of the SuspComm that was sent or received
  Credits credits;
  SendHalf sending;
  ReceiveHalf receiving;
  Ring<Control, 32> control;
  Ring<DirectResult, 32> results;
  std::array<InFlight, kMostSendSlots> in_flight{};
  std::uint32_t disconn_sequence = 0;  // of this end's DisConn
  std::uint32_t events = 0;
  std::uint32_t unsignaled = 0;  // work requests since the last one with a completion
  State state = State::Idle;
  State after_resume = State::Established;
  std::uint8_t program_closed = 0;  // close() was called: bytes that come are an error
  std::uint8_t abort_sent = 0;
  Step suspend = Step::None;            // by this end
  Step suspended_by_peer = Step::None;  // Wanted: its SuspComm is to be acknowledged
  std::uint8_t is_suspended = 0;
  std::uint8_t was_first_to_close = 0;  // this end's DisConn went out before the peer's came
  std::uint8_t disconn_completed = 0;
  std::array<std::uint8_t, 3> spare{};
};
static_assert(std::is_standard_layout_v<Stream> && std::is_trivially_copyable_v<Stream>);
// The same in 32-bit programs.
static_assert(alignof(Stream) == 8 && sizeof(Stream) == 7880);

}  // namespace ib::sdp
