// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing, and what both owe the peer: receives for what it wants to send, the bell
// when there is news for it, and work at its end that nobody there does.
#include "streams/end.h"

#include "streams/bells.h"
#include "streams/end_setup.h"
#include "streams/section.h"
#include "streams/shut.h"
#include "ulp/sdp/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::streams {
namespace {

// Copies to the program's memory, from its byte `at` on; returns how many bytes fitted.
std::size_t put(std::span<const Part> parts, std::size_t at, const std::byte* from,
                std::size_t length) {
  std::size_t done = 0;
  for (const Part& part : parts) {
    if (at >= part.length) {
      at -= part.length;
      continue;
    }
    const std::size_t here = std::min(part.length - at, length - done);
    std::memcpy(part.at + at, from + done, here);
    done += here;
    at = 0;
    if (done == length) break;
  }
  return done;
}

// A writer that has waited goes on when a third of its ring is free, as TCP has it.
bool has_room_again(const SharedEnd& end) {
  const std::uint32_t size = end.state.settings.send_ring_bytes;
  return sdp::is_over(end.state) || end.state.sending.is_shut != 0 ||
         sdp::writable_bytes(end.state) >= size / 3;
}

}  // namespace

Result<std::unique_ptr<End>> End::open(hca::MemoryPlane& plane,
                                       const verbs::control::StreamOut& out) {
  SharedEnd* const shared = find_end(plane.arena(), out.offset);
  if (shared == nullptr || shared->stream.load(std::memory_order_acquire) != out.stream) {
    return Status::InvalidParameter;
  }
  SharedEnd* const peer = find_end(plane.arena(), shared->peer);
  const std::uint32_t qp = shared->qp;
  if (peer == nullptr || plane.arena().qp(qp) == nullptr) return Status::InvalidParameter;
  auto own = Work::open(plane, *shared);
  if (!own) return own.error();
  auto peers = Work::open(plane, *peer);
  if (!peers) return peers.error();
  return std::unique_ptr<End>(new End({plane, out.stream, hca::executing::queue_pair(qp)}, out,
                                      *shared, *peer, *std::move(own), *std::move(peers)));
}

End::End(const Access& access, const verbs::control::StreamOut& out, SharedEnd& shared,
         SharedEnd& peer, std::unique_ptr<Work> own, std::unique_ptr<Work> peers)
    : access_(access),
      shared_(shared),
      peer_(peer),
      end_(out.end),
      local_(out.local),
      remote_(out.remote),
      own_(std::move(own)),
      peers_(std::move(peers)) {}

End::~End() = default;

// --- reading ---

bool End::has_news() const {
  return own_->has_arrival() || shared_.state.receiving.readable != 0 ||
         shared_.broken.load(std::memory_order_relaxed) != 0 || is_over_for_reads();
}

bool End::is_over_for_reads() const {
  return sdp::is_over(shared_.state) || shared_.state.state == sdp::State::Aborting ||
         (shared_.shut & kShutRead) != 0 || sdp::front(shared_.state).kind == sdp::Front::End;
}

// The reset of a connection is told once; then the stream has just ended.
Verdict End::ended() {
  const sdp::State state = shared_.state.state;
  const bool was_reset = state == sdp::State::Reset || state == sdp::State::Lost ||
                         state == sdp::State::Aborted || state == sdp::State::Aborting;
  if (!was_reset || shared_.end_reported != 0) return Verdict::EndOfStream;
  shared_.end_reported = 1;
  return Verdict::Reset;
}

// MSG_PEEK: bytes of the stream, from the front on, to the program's memory.
std::size_t End::copy_ahead(std::span<const Part> parts, ReadHow how) {
  const std::size_t room = length_of(parts);
  std::size_t done = 0;
  const auto& items = shared_.state.receiving.items;
  for (std::uint32_t i = 0; i < items.size() && done < room; ++i) {
    const sdp::ReceiveItem& item = items[i];
    if (item.kind != sdp::ReceiveItem::Bytes || item.buffer >= kBuffers) break;
    std::uint32_t length = item.length;
    if (item.urgent != 0 && !how.with_urgent) --length;
    const std::uint32_t offset = std::min(item.offset, kBufferBytes);
    done += put(parts, done, own_->buffer(item.buffer) + offset,
                std::min(length, kBufferBytes - offset));
    if (item.urgent != 0) break;
  }
  return done;
}

// A reader that only looks does the same work as others when there is nothing.
std::size_t End::look_ahead(Link& link, std::span<const Part> parts, ReadHow how) {
  const std::size_t there = copy_ahead(parts, how);
  if (there > 0) return there;
  read_through(link, {}, how);
  return copy_ahead(parts, how);
}

// Bytes of the stream, from the front on, to the program's memory from `from` on. They are
// consumed, and their buffers posted again.
std::size_t End::copy_out(std::span<const Part> parts, std::size_t from, ReadHow how) {
  sdp::Stream& state = shared_.state;
  const std::size_t room = length_of(parts);
  std::size_t done = 0;
  while (from + done < room) {
    const sdp::Front front = sdp::front(state);
    if (front.kind != sdp::Front::Bytes || front.buffer >= kBuffers) break;
    if (front.urgent && !how.with_urgent) {
      if (from + done > 0) break;  // a read stops before the urgent byte
      shared_.urgent_byte = static_cast<std::uint8_t>(
          own_->buffer(front.buffer)[std::min(front.offset, kBufferBytes - 1)]);
      shared_.has_urgent_byte = std::exchange(shared_.urgent_was_read, std::uint8_t{0}) == 0;
      sdp::consume(state, 1);
      continue;
    }
    const std::uint32_t offset = std::min(front.offset, kBufferBytes);
    const std::size_t length = std::min<std::size_t>(front.length, kBufferBytes - offset);
    const std::size_t count = put(parts, from + done, own_->buffer(front.buffer) + offset, length);
    sdp::consume(state, static_cast<std::uint32_t>(count));
    done += count;
    if (front.urgent) break;
  }
  shared_.bytes_received += done;
  return done;
}

// MSG_OOB without SO_OOBINLINE: the byte that the stream was read up to, or one further on.
Moved End::read_urgent(std::span<const Part> parts, ReadHow how) {
  if (how.with_urgent) return {Verdict::NoUrgent, 0};
  if (shared_.has_urgent_byte == 0) {
    const auto urgent = sdp::find_urgent(shared_.state);
    if (shared_.urgent_was_read != 0 || !urgent || urgent->buffer >= kBuffers ||
        urgent->offset >= kBufferBytes) {
      return {Verdict::NoUrgent, 0};
    }
    shared_.urgent_byte = static_cast<std::uint8_t>(own_->buffer(urgent->buffer)[urgent->offset]);
    const std::byte byte{shared_.urgent_byte};
    shared_.urgent_was_read = how.peek ? 0 : 1;
    return {Verdict::Done, put(parts, 0, &byte, 1)};
  }
  const std::byte byte{shared_.urgent_byte};
  if (!how.peek) shared_.has_urgent_byte = 0;
  return {Verdict::Done, put(parts, 0, &byte, 1)};
}

Moved End::read(Link& link, std::span<const Part> parts, ReadHow how) {
  const Moved moved = read_locked(link, parts, how);
  answer(link);
  return moved;
}

Moved End::read_locked(Link& link, std::span<const Part> parts, ReadHow how) {
  Section section(access_, shared_);
  if (!section) return {Verdict::Gone, 0};
  take_in(link);
  if (how.urgent) return read_urgent(parts, how);
  const std::size_t done = how.peek ? look_ahead(link, parts, how) : read_through(link, parts, how);
  let_peer_go_on(link);
  const bool left_rung = shared_.state.receiving.readable == 0 && stays_rung(how);
  if (done > 0 || length_of(parts) == 0) {
    shared_.edge_due.store(1, std::memory_order_relaxed);
    return {Verdict::Done, done, left_rung};
  }
  if (is_over_for_reads()) {
    shut_link_for_reads(link);
    return {ended(), 0};
  }
  return {Verdict::WouldBlock, 0, left_rung};
}

// Until the program's memory is full, or nothing is left to read. Returns how many bytes that is.
std::size_t End::read_through(Link& link, std::span<const Part> parts, ReadHow how) {
  const std::size_t room = length_of(parts);
  std::size_t done = 0;
  while (true) {
    const std::size_t count = copy_out(parts, done, how);
    done += count;
    if (count > 0) {
      give_way(link);
      take_in(link);
      if (done < room) continue;
    }
    if (shared_.state.receiving.readable != 0 || is_over_for_reads()) return done;
    if (done == 0) {
      const bool has_bell = is_rung(shared_) && !how.leaves_rung;
      if (has_bell || !bury_peer(link)) have_peer_send(link);
      take_in(link);
      if (shared_.state.receiving.readable != 0 || is_over_for_reads()) continue;
    }
    if (stays_rung(how) || settle(link) || done == room) return done;
  }
}

// Only where the one packet that there is would be taken, and the next message brings no other.
bool End::stays_rung(ReadHow how) const {
  const std::uint32_t word = shared_.bell.load(std::memory_order_relaxed);
  return how.leaves_rung && (word & ~bell::kComing) == bell::kRung && shared_.owed == 0 &&
         shared_.wants_edges.load(std::memory_order_relaxed) == 0 && !keeps_packet();
}

// After bytes have been read: the peer gets its receives back, and goes on.
void End::give_way(Link& link) {
  own_->give_receives();
  send(link);
  have_peer_send(link);
}

// Nothing is left to read, so no packet is. Returns false if something has come meanwhile.
bool End::settle(Link& link) {
  const auto has_arrival = [this] { return own_->has_arrival(); };
  while (shared_.state.receiving.readable == 0 && !is_over_for_reads()) {
    if (become_quiet(shared_, link, access_.plane.host(), has_arrival, keeps_packet())) return true;
    take_in(link);
  }
  return false;
}

// A port is down, so that the peer gets no receives for what it wants to send. When they have gone
// it may be that nobody is at work there: then this end has the peer send, and needs a packet.
bool End::keeps_packet() const {
  return shared_.pending.header_length != 0 &&
         peer_.has_backlog.load(std::memory_order_relaxed) != 0;
}

// A writer at the other side that has found no room waits no longer.
void End::let_peer_go_on(Link& link) {
  if (has_extra(shared_) && has_room_again(peer_) && !keeps_packet()) {
    let_peer_write(shared_, link, access_.plane.host());
  }
}

// Sends the bytes that wait at the peer's end, if nobody else works there. Not without a packet in
// this end's queue, since the peer's link, by which it could be told, is not here.
void End::have_peer_send(Link& link) {
  if (shared_.peer_is_buried == 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with that of send()
    if (peer_.has_backlog.load(std::memory_order_relaxed) == 0) return;
    if (!use_extra_packet(shared_) && !link.has_hung_up()) return;
  }
  peer_.wanted.store(1, std::memory_order_seq_cst);
  Section section(access_, peer_, Section::Wait::No);
  if (!section) return;  // who has the lock finds `wanted`
  peer_.wanted.store(0, std::memory_order_seq_cst);
  peers_->receive();
  peers_->send(nullptr);
  peer_.has_backlog.store(peers_->has_backlog() ? 1 : 0, std::memory_order_relaxed);
}

// The link of the peer is closed everywhere: the call close() is made at its end. Returns false if
// it is not. A link hangs up as well when both halves were shut; then nothing is left to be done.
bool End::bury_peer(Link& link) {
  if (shared_.peer_is_buried == 0) {
    if (!link.has_hung_up()) return false;
    const bool reads_shut = (shared_.shut & kShutRead) != 0 || (peer_.shut & kShutWrite) != 0;
    const bool writes_shut = (shared_.shut & kShutWrite) != 0 || (peer_.shut & kShutRead) != 0;
    if (reads_shut && writes_shut) return false;
    Section section(access_, peer_);
    if (!section) {
      sdp::on_lost(shared_.state);
      return true;
    }
    if (peer_.state.program_closed == 0) {
      peers_->receive();
      sdp::close(peer_.state, peer_.linger_zero != 0, peers_->now());
    }
    peers_->receive();
    peers_->send(nullptr);
    shared_.peer_is_buried = 1;
    return true;
  }
  have_peer_send(link);
  return true;
}

// --- writing ---

// Arrivals go to the engine; they may be receives for bytes that wait here.
void End::take_in(Link& link) {
  own_->receive();
  if (own_->has_backlog()) send(link);
  shut_link(link);
}

// The link is shut for what the program has shut once that is all sent: a link that is shut takes
// no packets for bytes that come later. The other side may have sent them.
void End::shut_link(Link& link) {
  const std::uint32_t shut = shared_.shut & (kShutWrite | kShutLinkWrite);
  if (shut != kShutWrite || own_->has_backlog()) return;
  shared_.shut |= kShutLinkWrite;
  link.shut_write();
}

// The peer has sent its last byte, maybe by the work of this end.
void End::shut_link_for_reads(Link& link) {
  if (sdp::front(shared_.state).kind != sdp::Front::End) return;
  if ((std::exchange(shared_.shut, shared_.shut | kShutLinkRead) & kShutLinkRead) != 0) return;
  link.shut_read();
}

// Sends from this end, and rings where there is news.
void End::send(Link& link) {
  while (true) {
    Bell bell(peer_);
    own_->send(&bell);
    if (!bell.ring(link)) peer_takes_no_bell_ = true;
    const bool backlog = own_->has_backlog();
    shared_.has_backlog.store(backlog ? 1 : 0, std::memory_order_relaxed);
    if (!backlog) return;
    // Receives that came between the look and the word that says that something waits for them.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!own_->has_arrival()) return;
    own_->receive();
  }
}

// The peer has found the lock taken, and wants this end to send. After the lock was let go.
void End::answer(Link& link) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (shared_.wanted.load(std::memory_order_relaxed) != 0) {
    Section section(access_, shared_, Section::Wait::No);
    if (!section) return;  // who has it now answers
    shared_.wanted.store(0, std::memory_order_seq_cst);
    own_->receive();
    send(link);
  }
}

// Whether the peer's link may be closed: something has said so, or nobody has looked for a while.
bool End::may_be_alone() {
  constexpr std::uint32_t kLookEach = 16;
  return std::exchange(peer_takes_no_bell_, false) || ++writes_ % kLookEach == 0 ||
         peer_.close_hint.load(std::memory_order_relaxed) != 0;
}

Verdict End::why_not_write() {
  if ((shared_.shut & kShutWrite) != 0) return Verdict::BrokenPipe;
  const sdp::State state = shared_.state.state;
  if (!sdp::is_over(shared_.state) && state != sdp::State::Aborting) return Verdict::Done;
  if (state == sdp::State::Closed) return Verdict::BrokenPipe;
  return ended() == Verdict::Reset ? Verdict::Reset : Verdict::BrokenPipe;
}

bool End::has_room() const {
  const sdp::State state = shared_.state.state;
  return !has_extra(peer_) && !is_stuck() && (shared_.shut & kShutWrite) == 0 &&
         shared_.broken.load(std::memory_order_relaxed) == 0 && !sdp::is_over(shared_.state) &&
         state != sdp::State::Aborting && sdp::writable_bytes(shared_.state) > 0;
}

// Writes what there is room for; returns how many bytes that is.
std::size_t End::write_some(Link& link, std::span<const ConstPart> parts, std::size_t from,
                            std::size_t total, bool urgent) {
  sdp::Stream& state = shared_.state;
  std::size_t done = from;
  while (done < total) {
    const auto chunk =
        static_cast<std::uint32_t>(std::min<std::size_t>(sdp::writable_bytes(state), total - done));
    if (chunk == 0) break;
    const std::uint64_t begin = state.sending.ring_written;
    const Fresh fresh{begin, begin + chunk, parts, done};
    if (sdp::write(state, chunk, urgent && done + chunk == total) != Status::Ok) break;
    Bell bell(peer_);
    own_->send(&bell, &fresh);
    if (!bell.ring(link)) peer_takes_no_bell_ = true;
    own_->keep(fresh);
    done += chunk;
    own_->receive();
    send(link);
  }
  return done - from;
}

// No room: the link becomes not writable. The peer may give some at any time; what there is then is
// used. Returns how many bytes that is.
std::size_t End::wait_later(Link& link, std::span<const ConstPart> parts, std::size_t from,
                            std::size_t total, bool urgent) {
  constexpr int kTries = 100;
  std::size_t done = from;
  for (int i = 0; i < kTries; ++i) {
    const bool is_held_up = peer_.pending.header_length != 0 || is_stuck() || i == kTries - 1;
    const bool waits = become_full(peer_, link, is_held_up);
    take_in(link);
    done += write_some(link, parts, done, total, urgent);
    if (waits || done == total || sdp::is_over(shared_.state)) break;
  }
  return done - from;
}

Moved End::write(Link& link, std::span<const ConstPart> parts, bool urgent) {
  const Moved moved = write_locked(link, parts, urgent);
  answer(link);
  return moved;
}

Moved End::write_locked(Link& link, std::span<const ConstPart> parts, bool urgent) {
  const std::size_t total = length_of(parts);
  Section section(access_, shared_);
  if (!section) return {Verdict::Gone, 0};
  take_in(link);
  if (const Verdict why = why_not_write(); why != Verdict::Done) return {why, 0};
  std::size_t done = write_some(link, parts, 0, total, urgent);
  // A peer that is gone tells nobody.
  if ((done < total || may_be_alone()) && bury_peer(link)) {
    take_in(link);
  }
  if (done < total && !sdp::is_over(shared_.state)) {
    const bool is_small = shared_.state.settings.send_ring_bytes < verbs::control::kStreamLargeRing;
    if (is_small && !no_larger_ring_) return {Verdict::WantsRing, done};
    done += wait_later(link, parts, done, total, urgent);
  }
  if (done > 0 || total == 0) return {Verdict::Done, done};
  if (const Verdict why = why_not_write(); why != Verdict::Done) return {why, 0};
  return {Verdict::WouldBlock, 0};
}

void End::use_ring(const std::optional<verbs::control::StreamRingOut>& ring) {
  no_larger_ring_ = true;
  if (!ring || ring->length != verbs::control::kStreamLargeRing) return;
  Section section(access_, shared_);
  if (section) no_larger_ring_ = !own_->use_ring(ring->offset, verbs::control::kStreamLargeRing);
}

}  // namespace ib::streams
