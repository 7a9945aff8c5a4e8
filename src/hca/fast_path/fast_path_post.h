// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of FastPath that a request is posted with.
//
// Each check of the slow path (send.cpp, rdma.cpp, responder_side.h) stands here too, in the
// cheapest order. A small message costs about a third of the instructions this way.
//
// It finds out hardly anything either, and so makes no call (but to copy more than eight bytes, or
// for another region of its own): what it compares with is what refresh() has found out after a
// refusal.
//
// Templates: fields of a request are read from where the program has them when they are wanted.
// `Send` is a view that has sge(), wr_id(), opcode(), flags(), imm(), rkey() and remote_address(),
// and fits into a register. Its kGathered: sge() is the whole of an InlinePieces, of a send.
#pragma once

#include "hca/fast_path/fast_path.h"
#include "hca/fast_path/inline_pieces.h"
#include "hca/layout/shm_lock.h"
#include "hca/memory/copy.h"
#include "hca/requester/message_count.h"
#include "hca/requester/srq_limit.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

template <class Send>
[[gnu::always_inline]] inline bool FastPath::write(Send send) {
  const auto& peer = peers_.peer().entry->id;
  const Sge& sge = send.sge();
  std::byte* from = own_piece_.find(send, 0);
  if (from == nullptr || (peer.access & verbs::access::kRemoteWrite) == 0) return false;
  std::byte* to = peers_.map_remote(send.rkey(), send.remote_address(), sge.length,
                                    verbs::access::kRemoteWrite);
  if (to != nullptr) [[likely]] {
    copy_tail_last(to, from, sge.length);
    // Mailboxes and flags are written again and again.
    next_.expect(to);
  } else if (!peers_.copy_far(verbs::access::kRemoteWrite, send.rkey(), send.remote_address(), from,
                              sge.length)) {
    return false;
  }
  count_payload(own_, sge.length);
  return true;
}

template <class Send>
[[gnu::always_inline]] inline bool FastPath::read(Send send) {
  const auto& peer = peers_.peer().entry->id;
  const Sge& sge = send.sge();
  if (type_ != verbs::QpType::Rc || is_inline(send) || retry_.limits().max_rd_atomic == 0 ||
      peer.max_dest_rd_atomic == 0 || (peer.access & verbs::access::kRemoteRead) == 0) {
    return false;
  }
  const std::byte* from =
      peers_.map_remote(send.rkey(), send.remote_address(), sge.length, verbs::access::kRemoteRead);
  std::byte* to = own_piece_.find(send, verbs::access::kLocalWrite);
  if (to == nullptr) return false;
  if (from != nullptr) [[likely]] {
    copy_tail_last(to, from, sge.length);
  } else if (!peers_.copy_far(verbs::access::kRemoteRead, send.rkey(), send.remote_address(), to,
                              sge.length)) {
    return false;
  }
  count_read(own_, sge.length);
  return true;
}

// Writes the completion of the peer's receive `id`.
template <class Send>
[[gnu::always_inline]] inline void FastPath::write_receive(Send send, std::uint32_t id,
                                                           std::uint32_t bytes, Cqe& slot) {
  peers_.receive().write(slot);
  slot.wqe = id;
  slot.byte_len = bytes;
  if (send.opcode() == verbs::WrOpcode::SendWithImm) [[unlikely]] {
    slot.flags = verbs::wc_flag::kWithImm;
    slot.imm = send.imm();
  }
  if ((send.flags() & verbs::send_flag::kSolicited) != 0) [[unlikely]]
    slot.bits = cqe_bit::kReceive | cqe_bit::kSolicited;
}

// Into a receive of one piece from the SRQ that the peer uses, in mapped memory. Locks, stores and
// their order are those of the slow path (ResponderSide::take_shared() and push_receive()), so a
// sender that dies or is stopped between any two of them leaves what it would have left there. Once
// others may have taken later receives this one cannot go back: if it cannot be completed, it is
// held, as by a request that waits, and the slow path goes on with it.
//
// Gathered bytes are copied under the lock of the completion queue: taking that lock waits for
// earlier stores, and the lines of the message and of its completion then come at the same time.
// Other bytes are not: reading the program's memory may take long, or be a signal.
//
// The room of the next receive, which others may get, is for NextLines::prefetch_room().
//
// Only tried when the inlined part has refused: it would cost the other requests registers.
template <class Send>
bool FastPath::send_to_shared(Send send) {
  SrqEntry* const queue = peers_.shared_queue();
  if (queue == nullptr || responder_.holds_receive()) return false;
  Peer& peer = peers_.peer();
  const std::uint32_t bytes = send.sge().length;
  const std::byte* from = own_piece_.find(send, 0);
  if (from == nullptr || !try_lock(queue->consumer.lock, lock_owner(plane_.slot()))) return false;
  const std::uint64_t head = queue->consumer.head.load(std::memory_order_relaxed);
  std::uint32_t id = 0;
  Sge room;
  std::byte* to = nullptr;
  if (peer.receives.available(head, queue->producer.tail) &&
      peer.receives.copy_single(head, id, room) && room.length >= bytes) {
    to = peers_.map_remote(room.lkey, room.address, bytes, verbs::access::kLocalWrite);
  }
  if (to == nullptr) {
    unlock(queue->consumer.lock);
    return false;
  }
  ResponderSide::take_from_shared(*peer.entry, *queue, head, id);
  unlock(queue->consumer.lock);
  raise_if_below_limit(plane_.host(), *queue, peer.srq, peer.srq_generation, head + 1);
  if (!Send::kGathered) copy_tail_last(to, from, bytes);
  auto& responder = peer.entry->responder;
  const Push pushed = peer.cq.push_with(plane_.arena(), plane_.host(), plane_.slot(),
                                        &responder.cq_intent, [&](Cqe& slot) {
                                          if (Send::kGathered) copy_as_dma(to, from, bytes);
                                          write_receive(send, id, bytes, slot);
                                        });
  if (pushed != Push::Done) {
    responder_.hold(peer.srq, id, room);
    return false;
  }
  responder.srq_taken.store(0, std::memory_order_release);
  responder.cq_intent.store(0, std::memory_order_release);
  next_.expect(peer.cq.next_slot());
  count_send(own_, bytes, send.opcode());
  if (Send::kGathered) expect_room(peer, *queue, head + 1);
  return true;
}

inline void FastPath::expect_room(Peer& peer, const SrqEntry& queue, std::uint64_t head) {
  std::uint32_t id = 0;
  Sge room;
  if (!peer.receives.available(head, queue.producer.tail) ||
      !peer.receives.copy_single(head, id, room)) {
    return;
  }
  const std::byte* to =
      peers_.map_remote(room.lkey, room.address, room.length, verbs::access::kLocalWrite);
  if (to != nullptr) next_.expect_room(to);
  peer.receives.prefetch(head + 1);
}

// Into a receive of one piece from the peer's own queue. The order of stores is that of
// ResponderSide::push_receive().
template <class Send>
[[gnu::always_inline]] inline bool FastPath::send_to_own(Send send) {
  Peer& peer = peers_.peer();
  auto& responder = peer.entry->responder;
  ReceiveSource& receives = peer.receives;
  const std::uint64_t head = responder.rq_head.load(std::memory_order_relaxed);
  if (!peers_.takes_sends() || !receives.available(head, peer.entry->owner.rq_tail)) return false;
  const std::uint32_t bytes = send.sge().length;
  std::uint32_t id = 0;
  Sge room;
  std::byte* from = own_piece_.find(send, 0);
  if (from == nullptr || !receives.copy_single(head, id, room) || room.length < bytes) return false;
  std::byte* to = peers_.map_remote(room.lkey, room.address, bytes, verbs::access::kLocalWrite);
  if (to != nullptr) [[likely]] {
    copy_tail_last(to, from, bytes);
  } else if (!peers_.copy_far(verbs::access::kLocalWrite, room.lkey, room.address, from, bytes)) {
    return false;
  }
  const bool pushed = peer.cq.push_fast(plane_.slot(), &responder.cq_intent,
                                        [&](Cqe& slot) { write_receive(send, id, bytes, slot); });
  if (!pushed) return false;
  responder.rq_head.store(head + 1, std::memory_order_release);
  receives.prefetch(head + 1);
  responder.cq_intent.store(0, std::memory_order_release);
  next_.expect(peer.cq.next_slot());
  count_send(own_, bytes, send.opcode());
  return true;
}

// Not a switch: that would be an indirect jump.
template <class Send>
[[gnu::always_inline]] inline bool FastPath::run(Send send, verbs::WcOpcode& opcode) {
  if (is_plain_send(send.opcode())) {
    opcode = verbs::WcOpcode::Send;
    if (Send::kGathered && peers_.shared_queue() != nullptr) return send_to_shared(send);
    return send_to_own(send);
  }
  if (send.opcode() == verbs::WrOpcode::RdmaWrite) {
    opcode = verbs::WcOpcode::RdmaWrite;
    return write(send);
  }
  opcode = verbs::WcOpcode::RdmaRead;
  return send.opcode() == verbs::WrOpcode::RdmaRead && read(send);
}

template <class Send>
[[gnu::always_inline]] inline FastPath::Posted FastPath::post(Send send) {
  if (send.sge().length - 1 >= kShortMessage || queue_.waiting() || queue_.is_full() ||
      own_.id.state.load(std::memory_order_acquire) != verbs::QpState::Rts || !peers_.stands()) {
    return Posted::No;
  }
  verbs::WcOpcode opcode{};
  if (!run(send, opcode)) return Posted::No;
  return executed(send, opcode);
}

// The sender's part of a message that is delivered.
template <class Send>
[[gnu::always_inline]] inline FastPath::Posted FastPath::executed(Send send,
                                                                  verbs::WcOpcode opcode) {
  retry_.message_ended(false);
  const std::uint64_t position = queue_.posted().append(send.wr_id());
  if (opcode == verbs::WcOpcode::Send && peers_.peer().cq.has_channel()) [[unlikely]]
    return Posted::Rest;
  return queue_.completions().write_fast(send.flags(), position, send.sge().length, opcode)
             ? Posted::Done
             : Posted::Rest;
}

// The same of a send into an SRQ.
template <class Send>
FastPath::Posted FastPath::post_to_shared(Send send) {
  if (!is_plain_send(send.opcode()) || queue_.is_full() ||
      own_.id.state.load(std::memory_order_acquire) != verbs::QpState::Rts || !peers_.stands() ||
      !send_to_shared(send)) {
    return Posted::No;
  }
  return executed(send, verbs::WcOpcode::Send);
}

// The same after post() has refused: into an SRQ, or after a refresh for this request. Returns
// false if it is for the slow path.
template <class Send>
[[gnu::noinline]] bool FastPath::refresh_and_post(Send send) {
  const auto& sge = send.sge();
  if (sge.length - 1 >= kShortMessage || queue_.waiting()) return false;
  const auto post_shared = [&] {
    return peers_.shared_queue() != nullptr ? post_to_shared(send) : Posted::No;
  };
  Posted posted = post_shared();
  if (posted == Posted::No) {
    if (!refresh({send.opcode(), send.rkey(), send.remote_address(), sge.length})) return false;
    posted = post(send);
    if (posted == Posted::No) posted = post_shared();
  }
  peers_.forget_once();
  if (posted == Posted::Rest) finish(send.opcode(), send.flags(), sge.length);
  return posted != Posted::No;
}

}  // namespace ib::hca
