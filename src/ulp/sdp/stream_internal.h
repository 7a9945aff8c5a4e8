// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Steps that several inputs of a stream share (stream.h).
#pragma once

#include "ulp/sdp/stream.h"

namespace ib::sdp {

inline std::int64_t nanoseconds(Instant time) {
  return time.time_since_epoch().count();
}

// Messages may be sent and received.
bool is_open(const Stream& stream);
bool peer_has_closed(const Stream& stream);
bool has_closed(const Stream& stream);  // this end's DisConn was sent
bool is_suspending(const Stream& stream);
inline std::uint32_t posts_in_flight(const Stream& stream) {
  return static_cast<std::uint32_t>(stream.next_tag - stream.oldest_tag);
}

inline void raise(Stream& stream, std::uint32_t events) {
  stream.events |= events;
}

// The peer broke a rule: aborts the stream. Returns Malformed.
Status protocol_error(Stream& stream);
// A queue that is full is the peer's fault: it has not waited for answers.
void queue_control(Stream& stream, Mid mid, std::uint32_t value = 0);
// Enters a state after which there is no message. Ends all direct writes and reads.
void finish(Stream& stream, State state);
void report(Stream& stream, const DirectResult& result);
void finish_if_closed(Stream& stream);
void finish_if_suspended(Stream& stream);

// -- The sending half.
// Retires items that are done, and reports their results.
void settle_items(Stream& stream);
// The peer does not read from advertised buffers any more. `copies` if it wants the first one in
// messages.
void revoke_adverts(Stream& stream, bool copies);
void take_back_adverts(Stream& stream);

// -- The receiving half.
void end_read(Stream& stream, std::uint32_t bytes);
void free_buffer(Stream& stream, std::uint32_t buffer);
// Voids the peer's advertisements and lets it send the bytes.
void drop_sources(Stream& stream);
bool has_source(const Stream& stream);
void on_read_complete(Stream& stream);

// -- Messages of advertisements; each returns the status of on_message().
Status on_src_avail(Stream& stream, const Message& message, std::uint32_t buffer, bool& kept);
Status on_sink_avail(Stream& stream, const Message& message);
Status on_read_completion(Stream& stream, const Message& message, Instant now);
Status on_write_completion(Stream& stream, const Message& message);
Status on_send_sm(Stream& stream);
Status on_src_avail_cancel(Stream& stream);
Status on_sink_avail_cancel(Stream& stream);
Status on_sink_cancel_ack(Stream& stream);
Status on_mode_change(Stream& stream, const Message& message);
// Bytes of the stream in a receive buffer.
Status on_payload(Stream& stream, const Message& message, std::uint32_t buffer, bool& kept);

}  // namespace ib::sdp
