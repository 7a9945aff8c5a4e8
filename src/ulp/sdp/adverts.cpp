// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages about advertised buffers: what a source says to a sink, a sink to a source, and how
// crossings end.
//
// Three rules make crossings harmless. (1) SendSm voids all SrcAvails that its sender has, and
// those that come until the peer has acknowledged it. (2) Payload voids the oldest SinkAvail; by
// the count of payloads that voided none, a source finds which SinkAvail its own payload has met
// under way. (3) A SinkAvail that is valid voids all SrcAvails of its receiver, as its sender drops
// those that come while it is open.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

namespace ib::sdp {
namespace {

SendItem* first_advertised(Stream& stream) {
  auto& items = stream.sending.items;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].phase == SendItem::Advertised) return &items[i];
  }
  return nullptr;
}

std::uint32_t open_sources(const Stream& stream) {
  const auto& items = stream.receiving.items;
  std::uint32_t count = 0;
  while (count < items.size() && items[items.size() - 1 - count].kind == ReceiveItem::Source)
    ++count;
  return count;
}

// The mode's rule for a SrcAvail.
bool fits_mode(const Stream& stream, const Message& message) {
  switch (stream.receiving.mode) {
    case Mode::Buffered: return false;
    case Mode::Combined:
      return message.payload != 0 && message.size > message.payload && !has_source(stream);
    case Mode::Pipelined:
      return message.payload == 0 && message.size != 0 &&
             open_sources(stream) < stream.settings.max_adverts;
  }
  return false;
}

// A SinkAvail that has crossed the message that changed the mode.
Status on_stale_sink_avail(Stream& stream, const Message& message) {
  auto& sending = stream.sending;
  if (message.non_discards == sending.non_discards_before) return Status::Ok;
  --sending.non_discards_before;
  --sending.non_discards;
  return Status::Ok;
}

}  // namespace

Status on_src_avail(Stream& stream, const Message& message, std::uint32_t buffer, bool& kept) {
  auto& receiving = stream.receiving;
  if (peer_has_closed(stream)) return Status::Malformed;
  if (stream.program_closed != 0) {
    abort(stream);
    return Status::Ok;
  }
  // One that a SinkAvail or a SendSm of this end has crossed is void; the source makes it again.
  const bool crossed = receiving.read.phase == DirectRead::Advertised ||
                       receiving.copies == Step::Wanted || receiving.copies == Step::Sent;
  if (receiving.cancel != Step::None || !fits_mode(stream, message)) return Status::Malformed;
  IB_CHECK(on_payload(stream, message, buffer, kept));
  if (crossed) return Status::Ok;
  ReceiveItem item;
  item.kind = ReceiveItem::Source;
  item.address = message.address + message.payload;
  item.rkey = message.rkey;
  item.length = message.size - message.payload;
  if (!receiving.items.push(item)) return Status::Malformed;
  receiving.readable += item.length;
  raise(stream, kReadable);
  return Status::Ok;
}

Status on_read_completion(Stream& stream, const Message& message, Instant now) {
  auto& sending = stream.sending;
  SendItem* const item = first_advertised(stream);
  if (item == nullptr || message.size > item->left()) return Status::Malformed;
  item->sent += message.size;
  if (item->left() == 0) {
    item->phase = SendItem::Copying;
    if (sending.advertised > 0) --sending.advertised;
  }
  sending.advert_deadline_ns = 0;
  if (first_advertised(stream) != nullptr) {
    sending.advert_deadline_ns = nanoseconds(now) + stream.settings.advert_timeout_ns;
  } else {
    sending.cancel = Step::None;
  }
  settle_items(stream);
  return Status::Ok;
}

// Without an advertisement it has crossed the SinkAvail that voided them.
Status on_send_sm(Stream& stream) {
  if (first_advertised(stream) != nullptr) revoke_adverts(stream, true);
  return Status::Ok;
}

Status on_src_avail_cancel(Stream& stream) {
  auto& receiving = stream.receiving;
  if (receiving.cancel != Step::None) return Status::Malformed;
  if (!has_source(stream)) return Status::Ok;  // it has crossed the end of the last one
  // Until it is done, the message is not acknowledged: a source may take that for the answer.
  if (stream.credits.holds == 0) stream.credits.held = stream.credits.received - 1;
  stream.credits.holds = 1;
  if (receiving.read.phase == DirectRead::Reading) {
    receiving.cancel = Step::Wanted;
    return Status::Ok;
  }
  drop_sources(stream);
  return Status::Ok;
}

Status on_sink_avail(Stream& stream, const Message& message) {
  auto& sending = stream.sending;
  if (message.size == 0) return Status::Malformed;
  if (sending.mode_change == Step::Sent) return on_stale_sink_avail(stream, message);
  if (sending.mode != Mode::Pipelined) return Status::Malformed;
  if (has_closed(stream)) return Status::Ok;  // it has crossed the DisConn
  if (message.non_discards != sending.non_discards) {
    if (is_after(message.non_discards, sending.non_discards)) return Status::Malformed;
    --sending.non_discards;
    return Status::Ok;
  }
  if (sending.sinks.size() >= stream.settings.max_adverts) return Status::Malformed;
  if (sending.advertised != 0) revoke_adverts(stream, false);
  sending.sinks.push({message.address, message.rkey, message.size, 0, 0});
  return Status::Ok;
}

Status on_write_completion(Stream& stream, const Message& message) {
  const DirectRead& read = stream.receiving.read;
  if (read.phase != DirectRead::Advertised || message.size > read.length) return Status::Malformed;
  end_read(stream, message.size);
  return Status::Ok;
}

Status on_sink_avail_cancel(Stream& stream) {
  auto& sinks = stream.sending.sinks;
  if (sinks.is_empty()) return Status::Ok;  // it has crossed the completion, or the payload
  if (sinks.front().written != 0) {
    queue_control(stream, Mid::RdmaWrCompl, sinks.front().written);
    sinks.pop();
  }
  if (!sinks.is_empty()) queue_control(stream, Mid::SinkCancelAck);
  sinks.clear();
  return Status::Ok;
}

Status on_sink_cancel_ack(Stream& stream) {
  const DirectRead& read = stream.receiving.read;
  if (read.phase != DirectRead::Advertised || read.cancel != Step::Sent) return Status::Malformed;
  end_read(stream, 0);
  return Status::Ok;
}

Status on_mode_change(Stream& stream, const Message& message) {
  raise(stream, kModeChanged);
  if (message.of_sending_half) {  // the sink may only leave Buffered
    auto& sending = stream.sending;
    if (sending.mode != Mode::Buffered || message.mode != Mode::Combined) return Status::Malformed;
    sending.mode = sending.mode_wanted = Mode::Combined;
    return Status::Ok;
  }
  auto& receiving = stream.receiving;
  const Mode from = receiving.mode;
  const bool is_legal = from == Mode::Combined
                            ? message.mode != Mode::Combined
                            : from == Mode::Pipelined && message.mode == Mode::Combined;
  if (!is_legal || has_source(stream)) return Status::Malformed;
  receiving.mode = message.mode;
  receiving.pipelined_request = Step::None;
  if (receiving.read.phase == DirectRead::Advertised) end_read(stream, 0);
  return Status::Ok;
}

}  // namespace ib::sdp
