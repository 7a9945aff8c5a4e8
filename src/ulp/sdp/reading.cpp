// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading: the queue of what has come, and the buffer that the program offers for what comes next.
#include "ulp/sdp/stream.h"
#include "ulp/sdp/stream_internal.h"

#include <algorithm>

namespace ib::sdp {

Front front(const Stream& stream) {
  const auto& items = stream.receiving.items;
  if (items.is_empty()) {
    return {peer_has_closed(stream) ? Front::End : Front::Nothing, 0, 0, 0, false};
  }
  const ReceiveItem& item = items.front();
  if (item.kind == ReceiveItem::Source) return {Front::Advertisement, 0, 0, item.length, false};
  const bool has_mark = item.urgent != 0;
  const bool at_mark = has_mark && item.length == 1;
  return {Front::Bytes, item.buffer, item.offset,
          has_mark && !at_mark ? item.length - 1 : item.length, at_mark};
}

std::uint64_t readable_bytes(const Stream& stream) {
  return stream.receiving.readable;
}

void consume(Stream& stream, std::uint32_t bytes) {
  auto& items = stream.receiving.items;
  if (items.is_empty() || items.front().kind != ReceiveItem::Bytes) return;
  ReceiveItem& item = items.front();
  const std::uint32_t taken = std::min(bytes, item.length);
  item.offset += taken;
  item.length -= taken;
  stream.receiving.readable -= taken;
  if (item.length != 0) return;
  free_buffer(stream, item.buffer);
  items.pop();
}

std::optional<UrgentByte> find_urgent(const Stream& stream) {
  const auto& items = stream.receiving.items;
  std::optional<UrgentByte> last;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const ReceiveItem& item = items[i];
    if (item.urgent == 0 || item.length == 0) continue;
    last = UrgentByte{item.buffer, item.offset + item.length - 1};
  }
  return last;
}

bool has_source(const Stream& stream) {
  const auto& items = stream.receiving.items;
  // Bytes never follow an advertisement that is open.
  return !items.is_empty() && items[items.size() - 1].kind == ReceiveItem::Source;
}

Status read_direct(Stream& stream, const DirectBuffer& buffer) {
  auto& receiving = stream.receiving;
  if (buffer.length == 0) return Status::InvalidParameter;
  if (!is_open(stream) || is_suspending(stream)) return Status::InvalidState;
  if (receiving.read.phase != DirectRead::None || receiving.cancel != Step::None) {
    return Status::InvalidState;
  }
  if (stream.sending.items.size() + stream.results.size() + 2 > 32) {
    return Status::InsufficientResources;  // each item gives a result, and so does this
  }
  const bool has_items = !receiving.items.is_empty();
  if (has_items && receiving.items.front().kind != ReceiveItem::Source) return Status::InvalidState;
  if (!has_items && peer_has_closed(stream)) return Status::InvalidState;
  receiving.read = DirectRead{};
  receiving.read.id = buffer.id;
  receiving.read.address = buffer.address;
  receiving.read.rkey = buffer.rkey;
  receiving.read.length = buffer.length;
  receiving.read.phase = DirectRead::Waiting;
  if (!has_items && receiving.mode == Mode::Combined && stream.settings.pipelined != 0 &&
      receiving.pipelined_request == Step::None) {
    receiving.pipelined_request = Step::Wanted;
  }
  return Status::Ok;
}

void cancel_read(Stream& stream) {
  DirectRead& read = stream.receiving.read;
  switch (read.phase) {
    case DirectRead::None:
    case DirectRead::Reading: return;  // its end comes without the peer
    case DirectRead::Waiting: return end_read(stream, 0);
    case DirectRead::Advertised:
      if (read.cancel == Step::None) read.cancel = Step::Wanted;
      return;
  }
}

void drop_sources(Stream& stream) {
  auto& receiving = stream.receiving;
  while (has_source(stream)) {
    receiving.readable -= receiving.items.back().length;
    --receiving.items.last;
  }
  receiving.copies = Step::Wanted;
  queue_control(stream, Mid::SendSm);
}

void request_copies(Stream& stream) {
  if (!is_open(stream) || !has_source(stream)) return;
  DirectRead& read = stream.receiving.read;
  if (read.phase == DirectRead::Reading || stream.receiving.copies == Step::Wanted) return;
  drop_sources(stream);
}

void on_read_complete(Stream& stream) {
  auto& receiving = stream.receiving;
  DirectRead& read = receiving.read;
  if (read.phase != DirectRead::Reading || receiving.items.is_empty()) return;
  ReceiveItem& source = receiving.items.front();
  const std::uint32_t bytes = std::min(read.reading, source.length);
  source.length -= bytes;
  source.address += bytes;
  receiving.readable -= bytes;
  queue_control(stream, Mid::RdmaRdCompl, bytes);
  if (is_over(stream)) return;
  if (source.length == 0) receiving.items.pop();
  end_read(stream, bytes);
  if (receiving.cancel == Step::None) return;
  receiving.cancel = Step::None;
  if (has_source(stream)) drop_sources(stream);
}

}  // namespace ib::sdp
