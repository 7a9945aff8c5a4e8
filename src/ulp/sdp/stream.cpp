// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream from its first message to its last: connecting, the change of states, completions, time.
#include "ulp/sdp/stream.h"

#include "ulp/sdp/stream_internal.h"

#include <algorithm>

namespace ib::sdp {
namespace {

bool make_sense(const Settings& settings) {
  return settings.send_ring_bytes > 0 && settings.send_ring_bytes <= 1u << 30 &&
         settings.receive_buffer_bytes > kLongestHeader &&
         settings.receive_buffers >= kLeastReceiveBuffers &&
         settings.receive_buffers <= kMostReceiveBuffers && settings.send_slots >= 4 &&
         settings.send_slots <= kMostSendSlots && settings.inlined_bytes > 0 &&
         settings.max_adverts > 0 && settings.max_adverts <= kMostAdverts &&
         settings.advert_timeout_ns > 0 && settings.close_timeout_ns > 0;
}

std::uint16_t posted_buffers(const Stream& stream) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(stream.credits.posted, 0xffff));
}

// A peer with fewer buffers could never be sent a byte.
Status take_peer(Stream& stream, std::uint32_t buffers, std::uint32_t size, std::uint32_t adverts) {
  if (buffers < Credits::kLeastForPayload) return Status::InvalidParameter;
  stream.credits.window_end = buffers;
  stream.credits.peer_buffers = buffers;
  stream.sending.remote_size = size;
  stream.sending.max_adverts = std::min(adverts, kMostAdverts);
  return Status::Ok;
}

}  // namespace

Status init(Stream& stream, const Settings& settings) {
  if (!make_sense(settings)) return Status::InvalidParameter;
  stream = Stream{};
  stream.settings = settings;
  stream.receiving.buffer_bytes = settings.receive_buffer_bytes;
  return Status::Ok;
}

Hello make_hello(Stream& stream, const Hello& addresses) {
  Hello hello = addresses;
  hello.buffers = posted_buffers(stream);
  hello.max_adverts = static_cast<std::uint8_t>(stream.settings.max_adverts);
  hello.local_size = stream.receiving.buffer_bytes;
  hello.desired_remote_size = stream.receiving.buffer_bytes;
  stream.credits.granted_end = hello.buffers;
  if (stream.state == State::Idle) stream.state = State::Connecting;
  return hello;
}

Status on_hello(Stream& stream, const Hello& hello) {
  if (stream.state != State::Idle) return Status::InvalidState;
  const bool extends = (hello.capabilities & kExtendedAdverts) != 0 && hello.extended_adverts != 0;
  return take_peer(stream, hello.buffers, hello.local_size,
                   extends ? hello.extended_adverts : hello.max_adverts);
}

HelloAck make_hello_ack(Stream& stream) {
  const HelloAck ack{posted_buffers(stream), static_cast<std::uint8_t>(stream.settings.max_adverts),
                     stream.receiving.buffer_bytes};
  stream.credits.granted_end = ack.buffers;
  if (stream.state == State::Idle) stream.state = State::Accepting;
  return ack;
}

Status on_hello_ack(Stream& stream, const HelloAck& ack) {
  if (stream.state != State::Connecting) return Status::InvalidState;
  IB_CHECK(take_peer(stream, ack.buffers, ack.actual_size, ack.max_adverts));
  stream.state = stream.after_resume;
  raise(stream, kWritable);
  return Status::Ok;
}

void on_established(Stream& stream) {
  if (stream.state != State::Accepting) return;
  stream.state = stream.after_resume;
  raise(stream, kWritable);
}

bool is_open(const Stream& stream) {
  switch (stream.state) {
    case State::Established:
    case State::DisConnSent:
    case State::DisConnReceived:
    case State::Closing: return true;
    case State::Idle:
    case State::Connecting:
    case State::Accepting:
    case State::Aborting:
    case State::Closed:
    case State::Aborted:
    case State::Reset:
    case State::Lost: return false;
  }
  return false;
}

bool is_over(const Stream& stream) {
  return stream.state >= State::Closed;
}

bool peer_has_closed(const Stream& stream) {
  return stream.state == State::DisConnReceived || stream.state == State::Closing ||
         stream.state == State::Closed;
}

bool has_closed(const Stream& stream) {
  return stream.state == State::DisConnSent || stream.state == State::Closing ||
         stream.state == State::Closed;
}

bool is_suspending(const Stream& stream) {
  return stream.suspend != Step::None || stream.suspended_by_peer != Step::None;
}

Status protocol_error(Stream& stream) {
  if (!is_over(stream) && stream.state != State::Aborting) {
    raise(stream, kProtocolError);
    abort(stream);
  }
  return Status::Malformed;
}

void queue_control(Stream& stream, Mid mid, std::uint32_t value) {
  if (!stream.control.push(Control{value, mid, {}})) (void)protocol_error(stream);
}

void finish(Stream& stream, State state) {
  if (is_over(stream)) return;
  stream.state = state;
  stream.control.clear();
  stream.close_deadline_ns = 0;
  stream.is_suspended = 0;
  stream.sending.advert_deadline_ns = 0;
  stream.sending.advertised = 0;
  for (std::uint32_t i = 0; i < stream.sending.items.size(); ++i) {
    const SendItem& item = stream.sending.items[i];
    if (item.kind == SendItem::Direct) report(stream, {item.id, item.sent, 0, 0});
  }
  stream.sending.items.clear();
  stream.sending.sinks.clear();
  if (stream.receiving.read.phase != DirectRead::None) end_read(stream, 0);
  // Bytes that have come stay readable, unless nobody reads them.
  Ring<ReceiveItem, 128> kept;
  stream.receiving.readable = 0;
  for (std::uint32_t i = 0; i < stream.receiving.items.size(); ++i) {
    const ReceiveItem& item = stream.receiving.items[i];
    if (item.kind != ReceiveItem::Bytes) continue;
    if (stream.program_closed != 0 || state == State::Aborted) {
      free_buffer(stream, item.buffer);
    } else {
      kept.push(item);
      stream.receiving.readable += item.length;
    }
  }
  stream.receiving.items = kept;
  raise(stream, kFinished);
}

void finish_if_closed(Stream& stream) {
  if (stream.state == State::Closing && posts_in_flight(stream) == 0) finish(stream, State::Closed);
}

void finish_if_suspended(Stream& stream) {
  if (!is_open(stream) || !is_suspending(stream)) return;
  if (stream.is_suspended != 0 || posts_in_flight(stream) != 0) return;
  const bool own = stream.suspend == Step::None || stream.suspend == Step::Answered;
  const bool peers =
      stream.suspended_by_peer == Step::None || stream.suspended_by_peer == Step::Answered;
  if (!own || !peers) return;
  stream.is_suspended = 1;
  raise(stream, kSuspended);
}

void on_posted(Stream& stream, std::uint32_t count) {
  stream.credits.posted += count;
}

void report(Stream& stream, const DirectResult& result) {
  stream.results.push(result);
  raise(stream, kResult);
}

void free_buffer(Stream& stream, std::uint32_t buffer) {
  stream.receiving.free.push(buffer);
}

std::optional<std::uint32_t> take_free_buffer(Stream& stream) {
  auto& free = stream.receiving.free;
  if (free.is_empty()) return std::nullopt;
  const std::uint32_t buffer = free.front();
  free.pop();
  if (!is_over(stream)) ++stream.credits.posted;
  return buffer;
}

void on_completion(Stream& stream, std::uint64_t tag) {
  const std::uint32_t out = posts_in_flight(stream);
  if (out > kMostSendSlots || tag - stream.oldest_tag >= out) return;  // of an earlier life
  while (stream.oldest_tag <= tag) {
    const InFlight done = stream.in_flight[stream.oldest_tag % kMostSendSlots];
    ++stream.oldest_tag;
    if (is_over(stream)) continue;
    if (done.ring_bytes != 0) {
      stream.sending.ring_freed += done.ring_bytes;
      raise(stream, kWritable);
    }
    if (done.is_direct != 0) {
      auto& items = stream.sending.items;
      const std::uint32_t i = done.item - items.first;
      if (i < items.size() && items[i].in_flight > 0) --items[i].in_flight;
    }
    if (done.kind == InFlight::Read) on_read_complete(stream);
    if (done.mid == Mid::DisConn) stream.disconn_completed = 1;
    if (done.mid == Mid::AbortConn && stream.state == State::Aborting) {
      finish(stream, State::Aborted);
    }
  }
  settle_items(stream);
  finish_if_closed(stream);
  finish_if_suspended(stream);
}

void on_lost(Stream& stream) {
  if (is_over(stream)) return;
  if (stream.state == State::Aborting) return finish(stream, State::Aborted);
  // The peer has sent its DisConn and has got this end's: nothing was lost.
  const bool has_got = stream.disconn_completed != 0 ||
                       !is_after(stream.disconn_sequence, stream.credits.acknowledged);
  if (stream.state == State::Closing && has_got) return finish(stream, State::Closed);
  finish(stream, State::Lost);
  raise(stream, kLost);
}

std::uint32_t take_events(Stream& stream) {
  const std::uint32_t events = stream.events;
  stream.events = 0;
  return events;
}

std::optional<DirectResult> take_result(Stream& stream) {
  if (stream.results.is_empty()) return std::nullopt;
  const DirectResult result = stream.results.front();
  stream.results.pop();
  return result;
}

std::optional<Instant> deadline(const Stream& stream) {
  std::int64_t first = 0;
  for (const std::int64_t each : {stream.close_deadline_ns, stream.sending.advert_deadline_ns}) {
    if (each != 0 && (first == 0 || each < first)) first = each;
  }
  if (first == 0) return std::nullopt;
  return Instant{Duration{first}};
}

void on_time(Stream& stream, Instant now) {
  const std::int64_t time = nanoseconds(now);
  auto& sending = stream.sending;
  if (sending.advert_deadline_ns != 0 && time >= sending.advert_deadline_ns) {
    sending.advert_deadline_ns = 0;
    take_back_adverts(stream);
  }
  if (stream.close_deadline_ns != 0 && time >= stream.close_deadline_ns) {
    stream.close_deadline_ns = 0;
    abort(stream);
  }
}

void end_read(Stream& stream, std::uint32_t bytes) {
  DirectRead& read = stream.receiving.read;
  if (read.phase == DirectRead::None) return;
  report(stream, {read.id, bytes, 1, 0});
  read = DirectRead{};
}

}  // namespace ib::sdp
