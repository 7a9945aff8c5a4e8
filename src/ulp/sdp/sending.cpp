// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Writing: the queue of what is to be sent, and the advertisements that this end has made as a
// source.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

#include <algorithm>

namespace ib::sdp {
namespace {

bool may_write(const Stream& stream) {
  if (stream.sending.is_shut != 0 || stream.program_closed != 0) return false;
  return stream.state == State::Accepting || stream.state == State::Established ||
         stream.state == State::DisConnReceived;
}

bool may_grow(const SendItem& item) {
  return item.kind == SendItem::Bytes && item.urgent == 0 && item.withdrawn == 0;
}

bool has_place(const Stream& stream) {
  const auto& items = stream.sending.items;
  return !items.is_full() || may_grow(items[items.size() - 1]);
}

std::uint32_t ring_used(const Stream& stream) {
  const std::uint64_t used = stream.sending.ring_written - stream.sending.ring_freed;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(used, stream.settings.send_ring_bytes));
}

SendItem* find_direct(Stream& stream, std::uint64_t id) {
  auto& items = stream.sending.items;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].kind == SendItem::Direct && items[i].id == id) return &items[i];
  }
  return nullptr;
}

// The bytes that no message has are not sent. An item that is not the first one leaves an empty
// place, so that its result does not wait for those before it.
void withdraw(Stream& stream, SendItem& item) {
  item.length = item.sent;
  item.withdrawn = 1;
  if (item.in_flight != 0) return;
  report(stream, {item.id, item.sent, 0, 0});
  item.kind = SendItem::Bytes;
  item.length = item.sent = 0;
}

void forget_earlier_urgent(Stream& stream) {
  auto& items = stream.sending.items;
  for (std::uint32_t i = 0; i < items.size(); ++i) items[i].urgent = 0;
}

}  // namespace

std::uint32_t writable_bytes(const Stream& stream) {
  if (!may_write(stream) || !has_place(stream)) return 0;
  return stream.settings.send_ring_bytes - ring_used(stream);
}

Piece room(const Stream& stream) {
  const std::uint32_t size = stream.settings.send_ring_bytes;
  if (size == 0) return {};
  const std::uint64_t offset = stream.sending.ring_written % size;
  const auto before_end = static_cast<std::uint32_t>(size - offset);
  return {Piece::SendRing, 0, offset, std::min(before_end, writable_bytes(stream))};
}

Status write(Stream& stream, std::uint32_t bytes, bool urgent) {
  if (!may_write(stream)) return Status::InvalidState;
  if (bytes == 0) return Status::Ok;
  if (bytes > writable_bytes(stream)) return Status::InsufficientResources;
  auto& items = stream.sending.items;
  if (items.is_empty() || !may_grow(items.back())) items.push(SendItem{});
  // As TCP has it, a second urgent byte before the first one is sent takes its place.
  if (urgent) forget_earlier_urgent(stream);
  items.back().length += bytes;
  items.back().urgent = urgent ? 1 : 0;
  stream.sending.ring_written += bytes;
  return Status::Ok;
}

Status write_direct(Stream& stream, const DirectBuffer& buffer) {
  if (!may_write(stream) || is_suspending(stream)) return Status::InvalidState;
  if (buffer.length == 0) return Status::InvalidParameter;
  auto& items = stream.sending.items;
  // Each item gives a result, and so may a read.
  if (items.is_full() || items.size() + stream.results.size() + 2 > 32) {
    return Status::InsufficientResources;
  }
  SendItem item;
  item.kind = SendItem::Direct;
  item.id = buffer.id;
  item.address = buffer.address;
  item.rkey = buffer.rkey;
  item.length = buffer.length;
  if (buffer.length < stream.settings.direct_threshold) item.phase = SendItem::Copying;
  items.push(item);
  return Status::Ok;
}

void cancel_write(Stream& stream, std::uint64_t id) {
  SendItem* const item = find_direct(stream, id);
  if (item == nullptr || item->withdrawn != 0) return;
  if (item->phase == SendItem::Advertised) {
    item->withdrawn = 1;
    take_back_adverts(stream);
    return;
  }
  withdraw(stream, *item);
  settle_items(stream);
}

void set_cork(Stream& stream, bool corked) {
  stream.sending.corked = corked ? 1 : 0;
}

// One SrcAvailCancel is for all advertisements; those that the program has not withdrawn are made
// again.
void take_back_adverts(Stream& stream) {
  if (stream.sending.advertised == 0 || stream.sending.cancel != Step::None) return;
  stream.sending.cancel = Step::Wanted;
}

void revoke_adverts(Stream& stream, bool copies) {
  auto& sending = stream.sending;
  for (std::uint32_t i = 0; i < sending.items.size(); ++i) {
    SendItem& item = sending.items[i];
    if (item.phase != SendItem::Advertised) continue;
    item.phase = copies ? SendItem::Copying : SendItem::Waiting;
    copies = false;
    if (item.withdrawn != 0) withdraw(stream, item);
  }
  sending.advertised = 0;
  sending.cancel = Step::None;
  sending.advert_deadline_ns = 0;
  settle_items(stream);
}

void settle_items(Stream& stream) {
  auto& items = stream.sending.items;
  while (!items.is_empty()) {
    const SendItem& item = items.front();
    if (item.phase == SendItem::Advertised || item.left() != 0 || item.in_flight != 0) return;
    if (item.kind == SendItem::Direct) report(stream, {item.id, item.sent, 0, 0});
    items.pop();
    raise(stream, kWritable);  // a place for an item
  }
}

}  // namespace ib::sdp
