// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of bytes: from the program's memory, or the send ring, into a receive buffer of the peer;
// one copy. The sender makes it.
#include "streams/work.h"

#include "base/address.h"
#include "hca/memory/copy.h"
#include "ulp/sdp/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ib::streams {
namespace {

// As long as the retries of the queue pair last: 8 times 4.096 us << 20.
constexpr Duration kPatience = std::chrono::seconds(34);

std::int64_t nanoseconds(Instant time) {
  return time.time_since_epoch().count();
}

// Messages that give credits, or answer, are nothing that a program would read.
bool is_news(std::uint8_t first_byte, std::uint32_t payload) {
  const auto mid = static_cast<sdp::Mid>(first_byte);
  return payload != 0 || mid == sdp::Mid::DisConn || mid == sdp::Mid::AbortConn;
}

}  // namespace

Result<std::unique_ptr<Work>> Work::open(hca::MemoryPlane& plane, SharedEnd& end) {
  auto queue = QueueView::open(plane, end);
  if (!queue) return queue.error();
  return std::unique_ptr<Work>(new Work(plane, end, *std::move(queue)));
}

void Work::receive() {
  Rings& rings = queue_->rings();
  while (rings.has_arrival()) {
    const Rings::Arrival arrival = rings.take();
    if (!arrival.is_good) {
      sdp::on_lost(end_.state);
      continue;
    }
    const std::span<const std::byte> message(rings.buffer(arrival.buffer), arrival.bytes);
    // Malformed: the engine resets the stream by itself.
    static_cast<void>(sdp::on_message(end_.state, arrival.buffer, message, now()));
    give_receives();
  }
  if (!rings.is_connected() || end_.broken.load(std::memory_order_acquire) != 0) {
    sdp::on_lost(end_.state);
  }
  const auto due = sdp::deadline(end_.state);
  if (due && now() >= *due) sdp::on_time(end_.state, now());
}

void Work::give_receives() {
  while (const auto buffer = sdp::take_free_buffer(end_.state)) {
    if (*buffer < kBuffers && !sdp::is_over(end_.state)) queue_->rings().post_receive(*buffer);
  }
}

// The ring of the engine's settings. Returns nullptr if device memory has none there.
std::byte* Work::ring() const {
  return plane_.arena().heap(end_.ring, end_.state.settings.send_ring_bytes);
}

bool Work::Pieces::add(const std::byte* at, std::size_t length) {
  if (length == 0) return true;
  if (count == all.size()) return false;
  all[count++] = {address_of(at), static_cast<std::uint32_t>(length), 0};
  return true;
}

// The bytes of the stream at `position` of the ring, which may be in the program's memory still.
// Returns false if they are in too many places.
bool Work::add_payload(Pieces& pieces, std::uint64_t position, std::uint32_t length,
                       const Fresh* fresh) {
  const std::uint32_t size = end_.state.settings.send_ring_bytes;
  std::byte* const ring = this->ring();
  if (ring == nullptr || size == 0) return false;
  const std::uint64_t end = position + length;
  const std::uint64_t kept_end = fresh == nullptr ? end : std::min(end, fresh->begin);
  if (position < kept_end) {
    const std::uint64_t offset = position % size;
    const std::uint64_t count = kept_end - position;
    if (count > size - offset) return false;  // a piece of the engine's never wraps around
    if (!pieces.add(ring + offset, count)) return false;
    position = kept_end;
  }
  if (position == end || fresh == nullptr) return position == end;
  return fresh->for_each(
      position, end, [&](const std::byte* at, std::uint64_t here) { return pieces.add(at, here); });
}

// Copies the bytes of [position, end) into the ring.
void Work::put(std::uint64_t position, const Fresh& fresh, std::uint64_t end) {
  const std::uint32_t size = end_.state.settings.send_ring_bytes;
  std::byte* const ring = this->ring();
  if (ring == nullptr || size == 0) return sdp::on_lost(end_.state);
  position = std::max(position, fresh.begin);
  if (position >= end) return;
  fresh.for_each(position, end, [&](const std::byte* from, std::uint64_t here) {
    while (here > 0) {
      const std::uint64_t offset = position % size;
      const std::uint64_t step = std::min<std::uint64_t>(here, size - offset);
      hca::copy_to_others(ring + offset, from, step);
      from += step;
      position += step;
      here -= step;
    }
    return true;
  });
}

void Work::keep(const Fresh& fresh) {
  const std::uint64_t sent = end_.state.sending.ring_sent;
  if (sent < fresh.end) put(sent, fresh, fresh.end);
}

Work::Sent Work::execute(const Pieces& pieces, std::uint64_t tag) {
  const auto tried = queue_->send(std::span(pieces.all).first(pieces.count));
  switch (tried.kind) {
    case hca::Requester::Tried::Done: sdp::on_completion(end_.state, tag); return Sent::Done;
    case hca::Requester::Tried::NotNow: return hold(tried.cause) ? Sent::NotNow : Sent::Lost;
    case hca::Requester::Tried::Failed: break;
  }
  sdp::on_lost(end_.state);
  return Sent::Lost;
}

// A message cannot go now. Returns false if it has waited long enough: then the stream is lost. An
// HCA that sleeps stops the clock.
bool Work::hold(hca::Cause cause) {
  const std::int64_t time = nanoseconds(now());
  PendingPost& pending = end_.pending;
  if (pending.deadline_ns == 0 || cause == hca::Cause::HcaAsleep) {
    pending.deadline_ns = time + kPatience.count();
  }
  if (time < pending.deadline_ns) return true;
  pending = {};
  sdp::on_lost(end_.state);
  return false;
}

Work::Sent Work::send_pending() {
  PendingPost& pending = end_.pending;
  Pieces pieces;
  const std::byte* const ring = this->ring();
  const std::uint64_t size = end_.state.settings.send_ring_bytes;
  const std::uint32_t header = std::min(pending.header_length, PendingPost::kMostHeader);
  if (ring == nullptr || pending.ring_offset > size ||
      pending.length > size - pending.ring_offset) {
    sdp::on_lost(end_.state);
    return Sent::Lost;
  }
  pieces.add(pending.header.data(), header);
  pieces.add(ring + pending.ring_offset, pending.length);
  const Sent sent = execute(pieces, pending.tag);
  if (sent != Sent::Done) return sent;
  end_.bytes_sent += pending.length;
  pending = {};
  return sent;
}

void Work::send(Bell* bell, const Fresh* fresh) {
  if (end_.pending.header_length != 0) {
    if (sdp::is_over(end_.state)) {
      end_.pending = {};
    } else {
      const auto mid = std::to_integer<std::uint8_t>(end_.pending.header[0]);
      const bool rings = bell != nullptr && is_news(mid, end_.pending.length);
      if (rings) bell->announce();
      if (send_pending() != Sent::Done) return;
      if (rings) bell->has_come();
    }
  }
  while (const auto post = sdp::next_post(end_.state, now())) {
    if (post->kind != sdp::Post::Send) {  // this end offers no buffers, and takes none
      sdp::on_lost(end_.state);
      break;
    }
    const std::uint64_t position = end_.state.sending.ring_sent - post->payload.length;
    Pieces pieces;
    pieces.add(reinterpret_cast<const std::byte*>(post->header.bytes.data()), post->header.length);
    if (post->payload.length != 0 && !add_payload(pieces, position, post->payload.length, fresh)) {
      if (fresh == nullptr) {
        sdp::on_lost(end_.state);
        break;
      }
      put(position, *fresh, position + post->payload.length);
      pieces.count = 1;
      add_payload(pieces, position, post->payload.length, nullptr);
    }
    const bool rings = bell != nullptr && is_news(post->header.bytes[0], post->payload.length);
    if (rings) bell->announce();
    const Sent sent = execute(pieces, post->tag);
    if (sent == Sent::NotNow) keep_pending(*post, position, fresh);
    if (sent != Sent::Done) break;
    if (rings) bell->has_come();
    end_.bytes_sent += post->payload.length;
  }
}

void Work::keep_pending(const sdp::Post& post, std::uint64_t position, const Fresh* fresh) {
  PendingPost& pending = end_.pending;
  if (fresh != nullptr && post.payload.length != 0) {
    put(position, *fresh, position + post.payload.length);
  }
  pending.tag = post.tag;
  pending.ring_offset = post.payload.offset;
  pending.length = post.payload.length;
  pending.header_length = std::min(post.header.length, PendingPost::kMostHeader);
  std::memcpy(pending.header.data(), post.header.bytes.data(), pending.header_length);
}

bool Work::has_backlog() const {
  const sdp::Stream& state = end_.state;
  if (sdp::is_over(state)) return false;
  return end_.pending.header_length != 0 || state.sending.ring_written != state.sending.ring_sent ||
         !state.control.is_empty() || state.state == sdp::State::Aborting ||
         (state.sending.is_shut != 0 && state.state < sdp::State::DisConnSent) ||
         (state.sending.is_shut != 0 && state.state == sdp::State::DisConnReceived);
}

bool Work::use_ring(std::uint64_t offset, std::uint32_t length) {
  sdp::Stream& state = end_.state;
  const std::uint32_t before = state.settings.send_ring_bytes;
  if (length <= before) return true;
  std::byte* const to = plane_.arena().heap(offset, length);
  const std::byte* const from = ring();
  if (to == nullptr || from == nullptr || before == 0) return false;
  // Bytes keep their positions, which are taken modulo the length of the ring.
  std::uint64_t position = state.sending.ring_freed;
  const std::uint64_t end = state.sending.ring_written;
  if (end - position > before) return false;
  if (end_.pending.length != 0) position = std::min(position, state.sending.ring_sent);
  while (position < end) {
    const std::uint64_t step =
        std::min({end - position, before - position % before, length - position % length});
    std::memcpy(to + position % length, from + position % before, step);
    position += step;
  }
  if (end_.pending.header_length != 0) {
    const std::uint64_t at = state.sending.ring_sent - end_.pending.length;
    // A piece must not wrap around in the new ring.
    if (end_.pending.length > length - at % length) return false;
    end_.pending.ring_offset = at % length;
  }
  end_.ring = offset;
  state.settings.send_ring_bytes = length;
  return true;
}

}  // namespace ib::streams
