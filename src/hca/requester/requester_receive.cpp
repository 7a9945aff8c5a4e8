// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The responder's part of a message, executed by the poster: taking the peer's receive, filling its
// buffers and delivering its completion.
//
// The order of stores here is what softibd's repair after a death relies on
// (docs/design/0003-death.md): SRQ: srq_taken before head; any: cq_intent before the completion's
// seq, seq before rq_head moves or srq_taken clears, cq_intent last.
#include "hca/requester/requester.h"

#include <algorithm>

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;

// RNR. `waiter` asks the owner's post_recv for a kick. Unreliable transports lose the message in
// the end (Requester::patience_left).
Requester::Outcome Requester::no_receive(Peer& peer, Shared32& waiter, const Shared64& tail) {
  // Who never posted one is not about to.
  if (is_unreliable() && tail.load(std::memory_order_relaxed) == 0) {
    return dropped(Cause::NoReceive);
  }
  if (waiter.load(std::memory_order_relaxed) == 0) {
    waiter.store(plane_.slot() + 1, std::memory_order_seq_cst);
  }
  return wait(Cause::NoReceive, peer.entry->id.min_rnr_timer);
}

Requester::Outcome Requester::take_receive(Peer& peer, std::uint32_t srqn) {
  QpEntry& entry = *peer.entry;
  std::uint32_t index = entry.id.srq;
  if (config_.type == QpType::XrcSend) index = srq_index(srqn);
  if (index != kNone) {
    SrqEntry* srq = arena_.srq(index);
    const bool usable = srq != nullptr && srq->id.generation.load(std::memory_order_acquire) != 0;
    if (config_.type == QpType::XrcSend) {
      if (!usable || srq->id.srqn != srqn || srq->id.xrcd != entry.id.xrcd) {
        return refused(peer, WcStatus::RemInvReqErr, {Cause::XrcReceiveQueue, false, srqn});
      }
    } else if (!usable) {
      return no_receive(peer, entry.waiter.rnr_waiter, entry.owner.rq_tail);
    }
    return take_shared(peer, *srq, index);
  }
  const std::uint64_t head = entry.responder.rq_head.load(std::memory_order_relaxed);
  if (!peer.receives.valid() || !peer.receives.available(head, entry.owner.rq_tail)) {
    return no_receive(peer, entry.waiter.rnr_waiter, entry.owner.rq_tail);
  }
  TakenReceive& taken = receive_.emplace();
  if (!peer.receives.copy(head, taken)) {
    receive_.reset();
    return refused(peer, WcStatus::RemOpErr, {Cause::RemoteReceiveKey, false, 0});
  }
  return done(0);
}

Requester::Outcome Requester::take_shared(Peer& peer, SrqEntry& srq, std::uint32_t index) {
  const std::uint32_t generation = srq.id.generation.load(std::memory_order_relaxed);
  if (peer.srq != index || peer.srq_generation != generation) {
    if (!peer.receives.set(arena_, srq.id.ring, srq.id.slots, srq.id.stride)) {
      return no_receive(peer, srq.event.rnr_waiter, srq.producer.tail);
    }
    peer.srq = index;
    peer.srq_generation = generation;
    if (config_.type == QpType::XrcSend) peer.cq = CqProducer(arena_, srq.id.cq);
  }
  PosterHost& host = plane_.host();
  if (!lock(srq.consumer.lock, lock_owner(plane_.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return wait(Cause::None);
  }
  const std::uint64_t head = srq.consumer.head.load(std::memory_order_relaxed);
  if (!peer.receives.available(head, srq.producer.tail)) {
    unlock(srq.consumer.lock);
    return no_receive(peer, srq.event.rnr_waiter, srq.producer.tail);
  }
  TakenReceive& taken = receive_.emplace();
  const bool well_formed = peer.receives.copy(head, taken);
  taken.srq = index;
  peer.entry->responder.srq_taken.store(taken.id + std::uint64_t{1}, std::memory_order_release);
  srq.consumer.head.store(head + 1, std::memory_order_release);
  const std::uint64_t left = srq.producer.tail.load(std::memory_order_relaxed) - head - 1;
  unlock(srq.consumer.lock);

  const std::uint32_t limit = srq.event.limit.load(std::memory_order_relaxed);
  if (limit != 0 && left < limit && srq.event.limit.exchange(0, std::memory_order_acq_rel) != 0) {
    host.raise(
        {verbs::control::EventObject::Srq, index, generation, verbs::EventType::SrqLimitReached});
  }
  if (!well_formed) {
    return receive_failed(peer, WcStatus::LocQpOpErr, WcStatus::RemOpErr, Cause::RemoteReceiveKey,
                          0);
  }
  return done(0);
}

// Fills the receive's buffers with the message and completes it. A small message for memory that
// is not mapped here rides in the completion; the owner puts it in place when it polls.
Requester::Outcome Requester::scatter(Peer& peer, const SendWqe& wqe, const LocalPieces& pieces) {
  const TakenReceive& receive = *receive_;
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  Responder responder;
  find_responder(peer, receive.srq, wqe.remote_srqn, responder);
  std::uint64_t start = 0;  // of the current element within the message
  for (std::uint32_t i = 0; i < receive.num_sge && start < pieces.total; ++i) {
    const Sge& sge = receive.sge[i];
    const std::uint64_t here = std::min<std::uint64_t>(sge.length, pieces.total - start);
    if (here == 0 || moved_ >= start + here) {
      start += here;
      continue;
    }
    Stretch target;
    Sge used = sge;
    used.length = static_cast<std::uint32_t>(here);
    const Access granted = plane_.receive(responder, used, target);
    if (granted.blocked) return wait(Cause::None);
    if (!granted.ok()) {
      return receive_failed(peer, WcStatus::LocProtErr, WcStatus::RemOpErr, Cause::RemoteReceiveKey,
                            sge.lkey);
    }
    if (target.kind == Stretch::Kind::Remote && bytes <= kInlineScatter) {
      std::byte payload[kInlineScatter];
      LocalPieces flat;
      Stretch buffer;
      buffer.pointer = payload;
      const Access gathered = plane_.write(pieces, 0, buffer, 0, bytes);  // into this stack
      if (!gathered.ok()) return transfer_failed(peer, gathered);
      return deliver(peer, wqe, WcOpcode::Recv, bytes, payload);
    }
    while (moved_ < start + here) {
      std::uint64_t step = 0;
      if (!spend(start + here - moved_, step)) return wait(Cause::None);
      const Access moved = plane_.write(pieces, moved_, target, moved_ - start, step);
      if (!moved.ok()) return transfer_failed(peer, moved);
      moved_ += step;
    }
    start += here;
  }
  return deliver(peer, wqe, WcOpcode::Recv, bytes);
}

Requester::Outcome Requester::deliver(Peer& peer, const SendWqe& wqe, WcOpcode opcode,
                                      std::uint32_t bytes, const std::byte* payload) {
  // When the data is in its place and not before [IBA1 9.4.1.1.3].
  if (wqe.opcode == verbs::WrOpcode::SendWithInv) {
    const Outcome invalidated = invalidate_remote(peer, wqe.imm);
    if (invalidated.kind != Outcome::Kind::Done) return invalidated;
  }
  Cqe cqe;
  describe_receive(wqe, opcode, bytes, cqe);
  cqe.wqe = receive_->id;
  cqe.srq = receive_->srq;
  if (payload != nullptr) cqe.inline_length = static_cast<std::uint8_t>(bytes);
  complete_before_delivery(wqe, bytes);
  const bool solicited = (wqe.flags & verbs::send_flag::kSolicited) != 0;
  if (!push_receive(peer, cqe, solicited, payload)) {
    return refused(peer, WcStatus::RemOpErr, {Cause::CqOverflow, false, 0});
  }
  count(peer.entry->responder, bytes);
  return done(bytes);
}

// Writes the completion of the held receive and gives the receive up. False: the CQ is full.
bool Requester::push_receive(Peer& peer, Cqe& cqe, bool solicited, const std::byte* payload) {
  auto& responder = peer.entry->responder;
  if (!peer.cq.valid()) return false;
  if (solicited) cqe.bits |= cqe_bit::kSolicited;
  if ((peer.cq.entry().id.flags & verbs::control::cq_flag::kTimestamp) != 0) {
    cqe.timestamp = static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
  }
  const bool shared_queue = receive_->srq != kNone;
  const Push pushed =
      peer.cq.push(arena_, plane_.host(), plane_.slot(), cqe, &responder.cq_intent, payload);
  if (pushed != Push::Done) {
    const CqEntry& cq = peer.cq.entry();
    plane_.host().raise({verbs::control::EventObject::Cq, peer.cq.index(),
                         cq.id.generation.load(std::memory_order_relaxed),
                         verbs::EventType::CqErr});
    return false;
  }
  if (shared_queue) {
    responder.srq_taken.store(0, std::memory_order_release);
  } else {
    const std::uint64_t next = responder.rq_head.load(std::memory_order_relaxed) + 1;
    responder.rq_head.store(next, std::memory_order_release);
    peer.receives.prefetch(next);
  }
  responder.cq_intent.store(0, std::memory_order_release);
  receive_.reset();
  peer.cq.fire(plane_.host(), solicited || cqe.status != 0);
  return true;
}

// The receive itself is at fault: its owner gets an error completion and both ends break. UC drops
// what does not fit and keeps the receive.
Requester::Outcome Requester::receive_failed(Peer& peer, WcStatus peer_status, WcStatus status,
                                             Cause cause, std::uint64_t detail) {
  if (config_.type == QpType::Uc && cause == Cause::RemoteLength && receive_->srq == kNone) {
    return dropped(cause, detail);
  }
  if (has_left(peer)) return config_.type == QpType::Uc ? dropped() : wait(Cause::None);
  complete_receive_in_error(peer, peer_status, cause);
  break_peer(*peer.entry, cause, std::nullopt);
  Outcome outcome =
      config_.type == QpType::Uc ? dropped(cause, detail) : fail(status, cause, detail);
  outcome.peer_status = peer_status;
  return outcome;
}

void Requester::complete_receive_in_error(Peer& peer, WcStatus status, Cause cause) {
  Cqe cqe;
  cqe.qpn = peer.qpn;
  cqe.wqe = receive_->id;
  cqe.srq = receive_->srq;
  cqe.status = static_cast<std::uint32_t>(status);
  cqe.vendor_err = static_cast<std::uint32_t>(cause);
  cqe.opcode = static_cast<std::uint32_t>(WcOpcode::Recv);
  cqe.bits = cqe_bit::kReceive;
  (void)push_receive(peer, cqe, true);  // a full CQ has been reported; the break says the rest
}

// SEND with invalidate: only a type 2 window bound to the peer can be named [IBA1 9.4.1.1.3].
// Another key is an error of class J [IBA1 9.9.6.3]: the receive fails, the peer breaks, and no NAK
// says so to the requester, whose retries run out.
Requester::Outcome Requester::invalidate_remote(Peer& peer, std::uint32_t rkey) {
  KeyEntry* key = arena_.key(key_index(rkey));
  const bool usable = key != nullptr && rkey != 0 &&
                      key->id.key.load(std::memory_order_acquire) == rkey &&
                      key->id.state.load(std::memory_order_acquire) ==
                          static_cast<std::uint32_t>(KeyState::Valid) &&
                      key->id.owner_slot == peer.entry->id.owner_slot &&
                      key->id.kind == KeyKind::Window2 && key->id.window_qpn == peer.qpn;
  if (!usable) {
    if (config_.type == QpType::Uc) return dropped(Cause::RemoteInvalidate, rkey);
    if (has_left(peer)) return wait(Cause::None);
    complete_receive_in_error(peer, WcStatus::MwBindErr, Cause::RemoteInvalidate);
    break_peer(*peer.entry, Cause::RemoteInvalidate, std::nullopt);
    return wait(Cause::RemoteInvalidate, rkey);
  }
  unbind_window(*key);
  return done(0);
}

// Moves a peer to Error; its owner's library then flushes it.
void Requester::break_peer(QpEntry& peer, Cause cause, std::optional<verbs::EventType> event) {
  peer.geometry.error_cause.store(static_cast<std::uint32_t>(cause), std::memory_order_relaxed);
  std::uint32_t state = peer.id.state.load(std::memory_order_relaxed);
  while (state == static_cast<std::uint32_t>(QpState::Rtr) ||
         state == static_cast<std::uint32_t>(QpState::Rts) ||
         state == static_cast<std::uint32_t>(QpState::Sqd) ||
         state == static_cast<std::uint32_t>(QpState::Sqe)) {
    if (peer.id.state.compare_exchange_weak(state, static_cast<std::uint32_t>(QpState::Error),
                                            std::memory_order_acq_rel)) {
      break;
    }
  }
  const std::uint32_t owner = peer.id.owner_slot;
  if (ProcessSlot* slot = arena_.slot(owner)) {
    slot->attention.fetch_add(1, std::memory_order_release);
    plane_.host().kick(owner);
  }
  if (event) {
    plane_.host().raise({verbs::control::EventObject::Qp, qp_index(peer.id.qpn.load()),
                         peer.id.generation, *event});
  }
}

}  // namespace ib::hca
