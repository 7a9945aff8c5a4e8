// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The next work request. One function for each kind, in the order of precedence; each returns
// nothing if its turn has not come.
//
// Order matters where the peer draws conclusions from it: answers go before advertisements,
// advertisements of this end before new bytes, and the completion of a written sink after its
// writes.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

#include <algorithm>

namespace ib::sdp {
namespace {

// Room that answers to the peer may take while a READ is out.
constexpr std::uint32_t kControlsKept = 8;

// While a change of the peer's receive buffers is open, the smaller size counts.
std::uint32_t longest_payload(const Stream& stream, Mid mid) {
  const auto& sending = stream.sending;
  std::uint32_t size = sending.remote_size;
  if (sending.remote_size_asked != 0) size = std::min(size, sending.remote_size_asked);
  const std::uint32_t header = header_length(mid);
  return size > header ? size - header : 1;
}

bool urgent_is_queued(const Stream& stream) {
  const auto& items = stream.sending.items;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].urgent != 0 && items[i].left() != 0) return true;
  }
  return false;
}

// Adds the work request to those in flight and decides whether it wants a completion: the ones that
// free memory or end the connection do, and one in a while.
Post take_slot(Stream& stream, Post post, InFlight record) {
  stream.sending.unsignaled_bytes += record.ring_bytes;
  ++stream.unsignaled;
  post.tag = stream.next_tag++;
  const auto& sending = stream.sending;
  const bool is_ending =
      has_closed(stream) || is_suspending(stream) || stream.state == State::Aborting;
  post.signaled = record.kind != InFlight::Send || record.is_direct != 0 || is_ending ||
                  stream.unsignaled >= stream.settings.send_slots / 4 ||
                  sending.unsignaled_bytes >= stream.settings.send_ring_bytes / 4;
  if (post.signaled) stream.unsignaled = stream.sending.unsignaled_bytes = 0;
  stream.in_flight[post.tag % kMostSendSlots] = record;
  return post;
}

// Fills in what the BSDH of each message has.
Post message_post(Stream& stream, Message message, const Piece& payload = {},
                  InFlight record = {}) {
  Credits& credits = stream.credits;
  if (stream.receiving.pipelined_request == Step::Wanted && !is_suspending(stream)) {
    message.flags |= kRequestPipelined;
    stream.receiving.pipelined_request = Step::Sent;
  }
  message.buffers = credits.advertised();
  message.sequence = ++credits.sent;
  message.acknowledged = credits.acknowledgement();
  message.payload = payload.length;
  credits.granted_end = message.acknowledged + message.buffers;
  Post post;
  post.kind = Post::Send;
  post.header = write(message);
  post.payload = payload;
  record.kind = InFlight::Send;
  record.mid = message.mid;
  return take_slot(stream, post, record);
}

Message of_kind(Mid mid) {
  Message message;
  message.mid = mid;
  return message;
}

// -- The next bytes of an item.

struct Chunk {
  Piece piece;
  InFlight record;
  bool ends_urgent = false;
};

// At most `most` bytes of the item, none if it has none; does not take them.
Chunk chunk_of(const Stream& stream, std::uint32_t i, std::uint64_t most) {
  const SendItem& item = stream.sending.items[i];
  std::uint64_t length = std::min<std::uint64_t>(item.left(), most);
  Chunk chunk;
  if (item.kind == SendItem::Direct) {
    chunk.piece = {Piece::WriteBuffer, item.id, item.sent, static_cast<std::uint32_t>(length)};
    chunk.record.item = stream.sending.items.first + i;
    chunk.record.is_direct = 1;
  } else {
    const std::uint32_t size = std::max<std::uint32_t>(stream.settings.send_ring_bytes, 1);
    const std::uint64_t offset = stream.sending.ring_sent % size;
    length = std::min<std::uint64_t>(length, size - offset);
    chunk.piece = {Piece::SendRing, 0, offset, static_cast<std::uint32_t>(length)};
    chunk.record.ring_bytes = static_cast<std::uint32_t>(length);
  }
  chunk.ends_urgent = item.urgent != 0 && length == item.left();
  return chunk;
}

void take(Stream& stream, std::uint32_t i, const Chunk& chunk) {
  SendItem& item = stream.sending.items[i];
  item.sent += chunk.piece.length;
  if (item.kind == SendItem::Direct) {
    ++item.in_flight;
  } else {
    stream.sending.ring_sent += chunk.piece.length;
  }
}

// The first item with bytes that are not advertised.
std::optional<std::uint32_t> next_item(const Stream& stream) {
  const auto& items = stream.sending.items;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].phase != SendItem::Advertised && items[i].left() != 0) return i;
  }
  return std::nullopt;
}

// Payload voids the oldest SinkAvail, or counts.
void count_payload(Stream& stream) {
  auto& sending = stream.sending;
  if (sending.sinks.is_empty()) {
    ++sending.non_discards;
  } else {
    sending.sinks.pop();
  }
}

// -- One function for each kind of work request.

std::optional<Post> abort_post(Stream& stream) {
  if (stream.abort_sent != 0) return std::nullopt;
  stream.abort_sent = 1;
  // Without a credit or a place the end of the queue pair is the message.
  if (stream.credits.available() == 0 || posts_in_flight(stream) >= stream.settings.send_slots) {
    finish(stream, State::Aborted);
    return std::nullopt;
  }
  return message_post(stream, of_kind(Mid::AbortConn));
}

std::optional<Post> read_post(Stream& stream) {
  auto& receiving = stream.receiving;
  DirectRead& read = receiving.read;
  if (read.phase != DirectRead::Waiting || receiving.items.is_empty()) return std::nullopt;
  const ReceiveItem& source = receiving.items.front();
  if (source.kind != ReceiveItem::Source) return std::nullopt;
  if (stream.control.size() + kControlsKept > 32) return std::nullopt;
  read.phase = DirectRead::Reading;
  read.reading = std::min(source.length, read.length);
  Post post;
  post.kind = Post::Read;
  post.payload = {Piece::ReadBuffer, read.id, 0, read.reading};
  post.remote_address = source.address;
  post.rkey = source.rkey;
  InFlight record;
  record.kind = InFlight::Read;
  return take_slot(stream, post, record);
}

std::optional<Post> control_post(Stream& stream) {
  if (stream.control.is_empty() || !stream.credits.may_send_control()) return std::nullopt;
  const Control control = stream.control.front();
  stream.control.pop();
  // The last answer says that a cancel is done, which its acknowledgement shows.
  if (stream.control.is_empty() && stream.receiving.cancel == Step::None) stream.credits.holds = 0;
  Message message = of_kind(control.mid);
  message.size = control.value;
  if (control.mid == Mid::ModeChange) {  // by the sink: the only change that it may make
    message.mode = Mode::Combined;
    message.of_sending_half = true;
  }
  const Post post = message_post(stream, message);
  if (control.mid == Mid::SendSm) {
    stream.receiving.copies = Step::Sent;
    stream.receiving.copies_sequence = stream.credits.sent;
  }
  return post;
}

std::optional<Post> cancel_post(Stream& stream) {
  if (!stream.credits.may_send_control()) return std::nullopt;
  if (stream.sending.cancel == Step::Wanted) {
    stream.sending.cancel = Step::Sent;
    return message_post(stream, of_kind(Mid::SrcAvailCancel));
  }
  DirectRead& read = stream.receiving.read;
  if (read.phase == DirectRead::Advertised && read.cancel == Step::Wanted) {
    read.cancel = Step::Sent;
    return message_post(stream, of_kind(Mid::SinkAvailCancel));
  }
  return std::nullopt;
}

std::optional<Post> suspend_post(Stream& stream) {
  const auto& sending = stream.sending;
  const bool is_idle = sending.advertised == 0 && sending.cancel == Step::None &&
                       stream.receiving.read.phase == DirectRead::None && stream.control.is_empty();
  if (!is_idle || !stream.credits.may_send_control()) return std::nullopt;
  if (stream.suspended_by_peer == Step::Wanted) {
    stream.suspended_by_peer = Step::Answered;
    return message_post(stream, of_kind(Mid::SuspCommAck));
  }
  if (stream.suspend == Step::Wanted) {
    stream.suspend = Step::Sent;
    Message message = of_kind(Mid::SuspComm);
    message.address = stream.suspend_service;
    return message_post(stream, message);
  }
  return std::nullopt;
}

std::optional<Post> mode_post(Stream& stream) {
  auto& sending = stream.sending;
  if (sending.mode_wanted == sending.mode || sending.mode_change != Step::None) return std::nullopt;
  const bool is_idle =
      sending.advertised == 0 && sending.sinks.is_empty() && sending.cancel == Step::None;
  if (!is_idle || has_closed(stream) || !stream.credits.may_send_control()) return std::nullopt;
  Message message = of_kind(Mid::ModeChange);
  message.mode = sending.mode_wanted;
  const Post post = message_post(stream, message);
  sending.mode = sending.mode_wanted;
  sending.mode_change = Step::Sent;
  sending.mode_sequence = stream.credits.sent;
  sending.non_discards_before = sending.non_discards;
  raise(stream, kModeChanged);
  return post;
}

std::optional<Post> sink_avail_post(Stream& stream) {
  auto& receiving = stream.receiving;
  DirectRead& read = receiving.read;
  if (read.phase != DirectRead::Waiting || !receiving.items.is_empty()) return std::nullopt;
  if (!stream.credits.may_send_payload() || peer_has_closed(stream)) return std::nullopt;
  if (receiving.pipelined_request == Step::Wanted) return message_post(stream, of_kind(Mid::Data));
  // A SinkAvail has room for the payload of any message, as one message voids one of them.
  if (receiving.mode != Mode::Pipelined || read.length < receiving.buffer_bytes)
    return std::nullopt;
  if (receiving.copies != Step::None || stream.credits.holds != 0) return std::nullopt;
  Message message = of_kind(Mid::SinkAvail);
  message.size = read.length;
  message.rkey = read.rkey;
  message.address = read.address;
  message.non_discards = receiving.non_discards;
  read.phase = DirectRead::Advertised;
  return message_post(stream, message);
}

// Into the peer's buffer as long as there is something for it; then the message that says how much.
std::optional<Post> sink_post(Stream& stream) {
  auto& sending = stream.sending;
  if (sending.sinks.is_empty()) return std::nullopt;
  SinkAdvert& sink = sending.sinks.front();
  const std::optional<std::uint32_t> i = next_item(stream);
  std::uint32_t most = sink.length - std::min(sink.written, sink.length);
  if (i && sending.items[*i].urgent != 0) {  // the urgent byte itself goes in a message
    most = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, sending.items[*i].left() - 1));
  }
  if (i && most != 0) {
    const Chunk chunk = chunk_of(stream, *i, most);
    Post post;
    post.kind = Post::Write;
    post.payload = chunk.piece;
    post.remote_address = sink.address + sink.written;
    post.rkey = sink.rkey;
    InFlight record = chunk.record;
    record.kind = InFlight::Write;
    take(stream, *i, chunk);
    sink.written += chunk.piece.length;
    return take_slot(stream, post, record);
  }
  if (sink.written == 0 || !stream.credits.may_send_control()) return std::nullopt;
  Message message = of_kind(Mid::RdmaWrCompl);
  message.size = sink.written;
  sending.sinks.pop();
  return message_post(stream, message);
}

std::optional<Post> src_avail_post(Stream& stream, std::uint32_t i, Instant now) {
  auto& sending = stream.sending;
  SendItem& item = sending.items[i];
  Message message = of_kind(Mid::SrcAvail);
  if (urgent_is_queued(stream)) message.flags |= kOobPending;
  message.size = static_cast<std::uint32_t>(item.left());
  message.rkey = item.rkey;
  message.address = item.address + item.sent;
  Chunk chunk;
  if (sending.mode == Mode::Combined) {
    const std::uint64_t most =
        std::min<std::uint64_t>(item.left() - 1, longest_payload(stream, Mid::SrcAvail));
    chunk = chunk_of(stream, i, std::min<std::uint64_t>(most, stream.settings.inlined_bytes));
    take(stream, i, chunk);
    count_payload(stream);
  }
  item.phase = SendItem::Advertised;
  ++sending.advertised;
  sending.advert_deadline_ns = nanoseconds(now) + stream.settings.advert_timeout_ns;
  return message_post(stream, message, chunk.piece, chunk.record);
}

bool is_held_by_cork(const Stream& stream, std::uint32_t i, const Chunk& chunk) {
  const auto& sending = stream.sending;
  return sending.corked != 0 && sending.is_shut == 0 && chunk.piece.area == Piece::SendRing &&
         i + 1 == sending.items.size() && sending.items[i].left() == chunk.piece.length &&
         chunk.piece.length < longest_payload(stream, Mid::Data) && sending.items[i].urgent == 0 &&
         writable_bytes(stream) != 0;
}

std::optional<Post> data_post(Stream& stream, std::uint32_t i) {
  const Chunk chunk = chunk_of(stream, i, longest_payload(stream, Mid::Data));
  if (is_held_by_cork(stream, i, chunk)) return std::nullopt;
  Message message = of_kind(Mid::Data);
  if (chunk.ends_urgent) {
    message.flags |= kOobPresent;
  } else if (urgent_is_queued(stream)) {
    message.flags |= kOobPending;
  }
  take(stream, i, chunk);
  count_payload(stream);
  return message_post(stream, message, chunk.piece, chunk.record);
}

std::optional<Post> item_post(Stream& stream, Instant now) {
  auto& sending = stream.sending;
  const std::optional<std::uint32_t> i = next_item(stream);
  if (!i || !stream.credits.may_send_payload()) return std::nullopt;
  const SendItem& item = sending.items[*i];
  const bool may_advertise = item.kind == SendItem::Direct && item.phase == SendItem::Waiting &&
                             sending.mode != Mode::Buffered && item.left() > 1;
  if (may_advertise && sending.cancel == Step::None) {
    if (stream.credits.holds != 0) return std::nullopt;  // it would look as if it had crossed
    const std::uint32_t most = sending.mode == Mode::Combined ? 1 : sending.max_adverts;
    if (sending.advertised < most && (sending.advertised == 0 || sending.mode == Mode::Pipelined)) {
      return src_avail_post(stream, *i, now);
    }
    return std::nullopt;
  }
  // Bytes never overtake an advertisement that is open, nor a sink that has bytes: that is
  // completed by sink_post(), which needs fewer credits.
  if (sending.advertised != 0) return std::nullopt;
  return data_post(stream, *i);
}

std::optional<Post> disconn_post(Stream& stream, Instant now) {
  const auto& sending = stream.sending;
  if (sending.is_shut == 0 || has_closed(stream) || next_item(stream) || sending.advertised != 0) {
    return std::nullopt;
  }
  if (!stream.credits.may_send_control()) return std::nullopt;
  stream.state = stream.state == State::DisConnReceived ? State::Closing : State::DisConnSent;
  if (stream.program_closed != 0 && stream.state == State::DisConnSent) {
    stream.close_deadline_ns = nanoseconds(now) + stream.settings.close_timeout_ns;
  }
  stream.sending.sinks.clear();
  stream.disconn_sequence = stream.credits.sent + 1;
  return message_post(stream, of_kind(Mid::DisConn));
}

std::optional<Post> update_post(Stream& stream) {
  if (!stream.credits.update_is_due()) return std::nullopt;
  return message_post(stream, of_kind(Mid::Data));
}

std::optional<Post> post_of_open_stream(Stream& stream, Instant now) {
  if (auto post = read_post(stream)) return post;
  if (auto post = control_post(stream)) return post;
  if (auto post = cancel_post(stream)) return post;
  if (is_suspending(stream)) {
    if (auto post = suspend_post(stream)) return post;
    return stream.suspended_by_peer == Step::Answered ? std::nullopt : update_post(stream);
  }
  if (stream.state == State::Closing) return std::nullopt;
  if (auto post = mode_post(stream)) return post;
  if (auto post = sink_avail_post(stream)) return post;
  if (!has_closed(stream)) {
    if (auto post = sink_post(stream)) return post;
    if (auto post = item_post(stream, now)) return post;
    if (auto post = disconn_post(stream, now)) return post;
  }
  return update_post(stream);
}

}  // namespace

std::optional<Post> next_post(Stream& stream, Instant now) {
  if (stream.state == State::Aborting) return abort_post(stream);
  if (!is_open(stream) || stream.is_suspended != 0) return std::nullopt;
  const std::uint32_t slots = std::min(stream.settings.send_slots, kMostSendSlots);
  if (posts_in_flight(stream) >= slots) return std::nullopt;
  return post_of_open_stream(stream, now);
}

}  // namespace ib::sdp
