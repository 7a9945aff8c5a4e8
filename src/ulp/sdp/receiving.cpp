// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A received message: sequence numbers and credits, then what its kind means. Advertisements:
// adverts.cpp.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

namespace ib::sdp {
namespace {

// Clears what was in doubt until the peer had seen a message of this end.
void note_acknowledgement(Stream& stream, std::uint32_t acknowledged) {
  auto& receiving = stream.receiving;
  if (receiving.copies == Step::Sent && !is_after(receiving.copies_sequence, acknowledged)) {
    receiving.copies = Step::None;
  }
  auto& sending = stream.sending;
  if (sending.mode_change == Step::Sent && !is_after(sending.mode_sequence, acknowledged)) {
    sending.mode_change = Step::None;
  }
}

Status take_numbers(Stream& stream, const Message& message) {
  Credits& credits = stream.credits;
  if (credits.posted == 0) return Status::Malformed;  // more messages than buffers were granted
  if (message.sequence != credits.received + 1) return Status::Malformed;
  if (is_after(message.acknowledged, credits.sent)) return Status::Malformed;
  --credits.posted;
  credits.received = message.sequence;
  credits.acknowledged = message.acknowledged;
  credits.window_end = message.acknowledged + message.buffers;
  note_acknowledgement(stream, message.acknowledged);
  return Status::Ok;
}

void take_flags(Stream& stream, const Message& message) {
  if ((message.flags & kOobPending) != 0) raise(stream, kUrgentPending);
  auto& sending = stream.sending;
  if ((message.flags & kRequestPipelined) != 0 && stream.settings.pipelined != 0 &&
      sending.mode == Mode::Combined) {
    sending.mode_wanted = Mode::Pipelined;
  }
}

Status on_disconn(Stream& stream) {
  if (peer_has_closed(stream) || has_source(stream)) return Status::Malformed;
  const bool closed = has_closed(stream);
  stream.state = closed ? State::Closing : State::DisConnReceived;
  stream.was_first_to_close = closed ? 1 : 0;
  if (stream.receiving.read.phase != DirectRead::Reading) end_read(stream, 0);
  stream.close_deadline_ns = 0;
  raise(stream, kPeerClosed | kReadable);
  finish_if_closed(stream);
  return Status::Ok;
}

Status on_abort(Stream& stream) {
  finish(stream, State::Reset);
  raise(stream, kReset);
  return Status::Ok;
}

Status on_resize(Stream& stream, std::uint32_t size) {
  if (stream.receiving.asked_size != 0 || size == 0) return Status::Malformed;
  stream.receiving.asked_size = size;
  raise(stream, kResizeAsked);
  return Status::Ok;
}

Status on_resize_answer(Stream& stream, std::uint32_t size) {
  if (stream.sending.remote_size_asked == 0 || size <= kLongestHeader) return Status::Malformed;
  stream.sending.remote_size_asked = 0;
  stream.sending.remote_size = size;
  raise(stream, kRemoteResized);
  return Status::Ok;
}

// If the two requests cross, each is acknowledged; one that was not sent yet gives way.
Status on_suspend(Stream& stream, std::uint64_t service) {
  if (stream.suspended_by_peer != Step::None) return Status::Malformed;
  stream.suspended_by_peer = Step::Wanted;
  if (stream.suspend == Step::Wanted) stream.suspend = Step::None;
  if (stream.suspend == Step::None) stream.suspend_service = service;
  take_back_adverts(stream);
  cancel_read(stream);
  return Status::Ok;
}

Status on_suspend_answer(Stream& stream) {
  if (stream.suspend != Step::Sent) return Status::Malformed;
  stream.suspend = Step::Answered;
  finish_if_suspended(stream);
  return Status::Ok;
}

Status dispatch(Stream& stream, const Message& message, std::uint32_t buffer, Instant now,
                bool& kept) {
  switch (message.mid) {
    case Mid::Data: return on_payload(stream, message, buffer, kept);
    case Mid::SrcAvail: return on_src_avail(stream, message, buffer, kept);
    case Mid::SinkAvail:
      IB_CHECK(on_sink_avail(stream, message));
      return on_payload(stream, message, buffer, kept);
    case Mid::DisConn: return on_disconn(stream);
    case Mid::AbortConn: return on_abort(stream);
    case Mid::SendSm: return on_send_sm(stream);
    case Mid::RdmaWrCompl: return on_write_completion(stream, message);
    case Mid::RdmaRdCompl: return on_read_completion(stream, message, now);
    case Mid::ModeChange: return on_mode_change(stream, message);
    case Mid::SrcAvailCancel: return on_src_avail_cancel(stream);
    case Mid::SinkAvailCancel: return on_sink_avail_cancel(stream);
    case Mid::SinkCancelAck: return on_sink_cancel_ack(stream);
    case Mid::ChRcvBuf: return on_resize(stream, message.size);
    case Mid::ChRcvBufAck: return on_resize_answer(stream, message.size);
    case Mid::SuspComm: return on_suspend(stream, message.address);
    case Mid::SuspCommAck: return on_suspend_answer(stream);
    case Mid::Hello:
    case Mid::HelloAck: return Status::Malformed;  // not over the queue pair
  }
  return Status::Malformed;
}

}  // namespace

Status on_payload(Stream& stream, const Message& message, std::uint32_t buffer, bool& kept) {
  if (message.payload == 0) return Status::Ok;
  if (peer_has_closed(stream) || has_source(stream)) return Status::Malformed;
  if (stream.program_closed != 0) {  // nobody will read it: as TCP, the peer is told by a reset
    abort(stream);
    return Status::Ok;
  }
  auto& receiving = stream.receiving;
  // The oldest SinkAvail is void: its source has sent these bytes before it came, or chose to.
  if (receiving.read.phase != DirectRead::Advertised) ++receiving.non_discards;
  if (receiving.read.phase != DirectRead::Reading) end_read(stream, 0);
  ReceiveItem item;
  item.buffer = buffer;
  item.offset = message.header_length;
  item.length = message.payload;
  item.urgent = (message.flags & kOobPresent) != 0 ? 1 : 0;
  if (!receiving.items.push(item)) return Status::Malformed;
  kept = true;
  receiving.readable += message.payload;
  raise(stream, item.urgent != 0 ? kReadable | kUrgent : kReadable);
  return Status::Ok;
}

Status on_message(Stream& stream, std::uint32_t buffer, std::span<const std::byte> bytes,
                  Instant now) {
  if (stream.state == State::Accepting) on_established(stream);
  if (!is_open(stream)) {
    free_buffer(stream, buffer);
    const bool is_late = is_over(stream) || stream.state == State::Aborting;
    return is_late ? Status::Ok : protocol_error(stream);
  }
  const Result<Message> message = parse(bytes);
  if (stream.is_suspended != 0) {  // a late update of credits, or the end
    free_buffer(stream, buffer);
    return message && message->mid == Mid::AbortConn ? on_abort(stream) : Status::Ok;
  }
  bool kept = false;
  Status status = message.error();
  if (message) status = take_numbers(stream, *message);
  if (status == Status::Ok) {
    take_flags(stream, *message);
    status = dispatch(stream, *message, buffer, now, kept);
  }
  if (!kept) free_buffer(stream, buffer);
  if (status != Status::Ok) return protocol_error(stream);
  settle_items(stream);
  return Status::Ok;
}

}  // namespace ib::sdp
