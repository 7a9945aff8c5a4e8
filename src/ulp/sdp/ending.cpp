// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Half close, close and reset by this end, and the messages that change the stream's terms: mode,
// size of receive buffers, suspension.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

#include <algorithm>

namespace ib::sdp {

void shutdown_send(Stream& stream) {
  stream.sending.is_shut = 1;
}

void close(Stream& stream, bool linger_zero, Instant now) {
  if (is_over(stream) || stream.state == State::Aborting) {
    stream.program_closed = 1;
    return;
  }
  stream.program_closed = 1;
  const bool has_unread = !stream.receiving.items.is_empty();
  if (linger_zero || has_unread || !(is_open(stream) || stream.state == State::Accepting)) {
    return abort(stream);
  }
  stream.sending.is_shut = 1;
  cancel_read(stream);
  if (stream.state == State::DisConnSent) {
    stream.close_deadline_ns = nanoseconds(now) + stream.settings.close_timeout_ns;
  }
}

void abort(Stream& stream) {
  if (is_over(stream) || stream.state == State::Aborting) return;
  if (!is_open(stream) || stream.is_suspended != 0) return finish(stream, State::Aborted);
  stream.state = State::Aborting;
  stream.control.clear();
  stream.close_deadline_ns = 0;
  stream.sending.advert_deadline_ns = 0;
}

Status request_send_mode(Stream& stream, Mode mode) {
  auto& sending = stream.sending;
  if (!is_open(stream) || has_closed(stream)) return Status::InvalidState;
  // Every change leaves or enters Combined, and the sink decides about the end of Buffered.
  const bool is_legal = sending.mode == mode || sending.mode == Mode::Combined ||
                        (sending.mode == Mode::Pipelined && mode == Mode::Combined);
  if (!is_legal) return Status::InvalidState;
  sending.mode_wanted = mode;
  return Status::Ok;
}

Status request_combined_receive(Stream& stream) {
  auto& receiving = stream.receiving;
  if (!is_open(stream) || receiving.mode != Mode::Buffered) return Status::InvalidState;
  if (stream.control.is_full()) return Status::InsufficientResources;
  receiving.mode = Mode::Combined;
  queue_control(stream, Mid::ModeChange);
  return Status::Ok;
}

Status request_remote_size(Stream& stream, std::uint32_t bytes) {
  auto& sending = stream.sending;
  if (bytes <= kLongestHeader) return Status::InvalidParameter;
  if (!is_open(stream) || sending.remote_size_asked != 0) return Status::InvalidState;
  if (stream.control.is_full()) return Status::InsufficientResources;
  sending.remote_size_asked = bytes;
  queue_control(stream, Mid::ChRcvBuf, bytes);
  return Status::Ok;
}

void answer_resize(Stream& stream, std::uint32_t actual_bytes) {
  auto& receiving = stream.receiving;
  if (receiving.asked_size == 0 || !is_open(stream)) return;
  // Until the answer the peer sends messages up to the smaller one of the two sizes.
  const std::uint32_t least = std::min(receiving.asked_size, receiving.buffer_bytes);
  receiving.asked_size = 0;
  receiving.buffer_bytes = std::max(actual_bytes, least);
  queue_control(stream, Mid::ChRcvBufAck, receiving.buffer_bytes);
}

Status suspend(Stream& stream, std::uint64_t service) {
  if (stream.state != State::Established || is_suspending(stream)) return Status::InvalidState;
  stream.suspend = Step::Wanted;
  stream.suspend_service = service;
  take_back_adverts(stream);
  cancel_read(stream);
  return Status::Ok;
}

Status resume(Stream& stream) {
  if (stream.is_suspended == 0 || is_over(stream)) return Status::InvalidState;
  stream.after_resume = stream.state;
  stream.state = State::Idle;
  stream.is_suspended = 0;
  stream.suspend = stream.suspended_by_peer = Step::None;
  stream.credits = Credits{};
  stream.control.clear();
  auto& sending = stream.sending;
  sending.sinks.clear();
  sending.mode = sending.mode_wanted = Mode::Combined;
  sending.mode_change = Step::None;
  sending.non_discards = sending.non_discards_before = 0;
  sending.remote_size_asked = 0;
  auto& receiving = stream.receiving;
  receiving.mode = Mode::Combined;
  receiving.non_discards = receiving.asked_size = 0;
  receiving.copies = receiving.cancel = receiving.pipelined_request = Step::None;
  return Status::Ok;
}

}  // namespace ib::sdp
