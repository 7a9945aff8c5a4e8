// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receives of the responder: taking, giving back and completing them.
#include "hca/layout/shm_lock.h"
#include "hca/queues/broken_queue_pair.h"
#include "hca/requester/responder_side.h"
#include "hca/requester/srq_limit.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;

// RNR. `waiter` makes the owner's post_recv kick this process. Unreliable transports lose the
// message in the end (RetryState::may_wait).
Outcome ResponderSide::no_receive(Peer& peer, const Arrival& arrival, Shared32& waiter,
                                  const Shared64& tail) {
  // A receiver that never posted a receive will not post one now.
  if (verbs::is_unreliable(arrival.service) && tail.load(std::memory_order_relaxed) == 0) {
    return Outcome::dropped(Cause::NoReceive);
  }
  // A receive that is posted at this moment may not see it, nor this the receive: a request that
  // waits is tried again at each tick, and this only makes it earlier.
  if (waiter.load(std::memory_order_relaxed) == 0) {
    waiter.store(plane_.slot() + 1, std::memory_order_seq_cst);
  }
  return Outcome::wait(Cause::NoReceive, peer.entry->id.min_rnr_timer);
}

Outcome ResponderSide::take_receive(Peer& peer, const Arrival& arrival) {
  QpEntry& entry = *peer.entry;
  const bool names_srq = arrival.service == QpType::XrcSend;
  const std::uint32_t index = names_srq ? srq_index(arrival.srqn) : entry.id.srq;
  if (index != kNone) {
    SrqEntry* srq = arena_.srq(index);
    const bool usable = srq != nullptr && srq->id.generation.load(std::memory_order_acquire) != 0;
    if (names_srq) {
      if (!usable || srq->id.srqn != arrival.srqn || srq->id.xrcd != entry.id.xrcd) {
        return refuse(peer, arrival, WcStatus::RemInvReqErr,
                      {Cause::XrcReceiveQueue, false, arrival.srqn});
      }
    } else if (!usable) {
      return no_receive(peer, arrival, entry.waiter.rnr_waiter, entry.owner.rq_tail);
    }
    return take_shared(peer, arrival, *srq, index);
  }
  const std::uint64_t head = entry.responder.rq_head.load(std::memory_order_relaxed);
  if (!peer.receives.valid() || !peer.receives.available(head, entry.owner.rq_tail)) {
    return no_receive(peer, arrival, entry.waiter.rnr_waiter, entry.owner.rq_tail);
  }
  TakenReceive& taken = receive_.emplace();
  if (!peer.receives.copy(head, taken)) {
    receive_.reset();
    return refuse(peer, arrival, WcStatus::RemOpErr, {Cause::RemoteReceiveKey, false, 0});
  }
  return Outcome::done();
}

Outcome ResponderSide::take_shared(Peer& peer, const Arrival& arrival, SrqEntry& srq,
                                   std::uint32_t index) {
  const std::uint32_t generation = srq.id.generation.load(std::memory_order_relaxed);
  const bool is_another = peer.srq != index || peer.srq_generation != generation;
  if (!peer.use_srq(arena_, srq, index, generation)) {
    return no_receive(peer, arrival, srq.event.rnr_waiter, srq.producer.tail);
  }
  if (is_another && arrival.service == QpType::XrcSend) peer.cq = CqProducer(arena_, srq.id.cq);
  PosterHost& host = plane_.host();
  if (!lock(srq.consumer.lock, lock_owner(plane_.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return Outcome::wait();
  }
  const std::uint64_t head = srq.consumer.head.load(std::memory_order_relaxed);
  if (!peer.receives.available(head, srq.producer.tail)) {
    unlock(srq.consumer.lock);
    return no_receive(peer, arrival, srq.event.rnr_waiter, srq.producer.tail);
  }
  TakenReceive& taken = receive_.emplace();
  const bool well_formed = peer.receives.copy(head, taken);
  taken.srq = index;
  take_from_shared(*peer.entry, srq, head, taken.id);
  unlock(srq.consumer.lock);
  raise_if_below_limit(host, srq, index, generation, head + 1);
  if (!well_formed) {
    return receive_failed(peer, arrival, WcStatus::LocQpOpErr, WcStatus::RemOpErr,
                          Cause::RemoteReceiveKey, 0);
  }
  return Outcome::done();
}

bool ResponderSide::put_back_receive(Peer& peer) {
  if (receive_->srq == kNone) return true;  // rq_head has not moved yet
  SrqEntry& srq = *arena_.srq(receive_->srq);
  PosterHost& host = plane_.host();
  if (!lock(srq.consumer.lock, lock_owner(plane_.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return false;
  }
  const std::uint64_t head = srq.consumer.head.load(std::memory_order_relaxed);
  TakenReceive newest;
  const bool mine = head > 0 && peer.receives.copy(head - 1, newest) && newest.id == receive_->id;
  if (mine) {
    srq.consumer.head.store(head - 1, std::memory_order_release);
    peer.entry->responder.srq_taken.store(0, std::memory_order_release);
  }
  unlock(srq.consumer.lock);
  return mine;
}

Outcome ResponderSide::deliver(Peer& peer, const Arrival& arrival, WcOpcode opcode,
                               std::uint32_t bytes, const Carried* carried) {
  Cqe cqe;
  describe_receive(arrival, peer.qpn, opcode, bytes, cqe);
  cqe.wqe = receive_->id;
  cqe.srq = receive_->srq;
  const std::byte* payload = carried != nullptr && carried->used ? carried->bytes : nullptr;
  if (payload != nullptr) cqe.inline_length = static_cast<std::uint8_t>(bytes);
  if (!push_receive(peer, cqe, arrival.solicited, payload)) {
    const bool left = has_left(peer);
    lose_queue(peer);
    if (arrival.service == QpType::Uc) return Outcome::dropped(Cause::CqOverflow);
    return left ? Outcome::wait() : Outcome::fail(WcStatus::RemOpErr, Cause::CqOverflow);
  }
  return Outcome::done(bytes);
}

void ResponderSide::lose_queue(Peer& peer) {
  if (!peer.cq.is_in_error() && verbs::is_unreliable(peer.entry->id.type)) return;
  peer.cq.report_error(plane_.host());  // softibd breaks its users
  break_queue_pair(plane_, *peer.entry, Cause::CqOverflow, verbs::EventType::QpFatal);
}

bool ResponderSide::push_receive(Peer& peer, Cqe& cqe, bool solicited, const std::byte* payload) {
  auto& responder = peer.entry->responder;
  if (!peer.cq.valid()) return false;
  if (solicited) cqe.bits |= cqe_bit::kSolicited;
  if (peer.cq.has_timestamps()) {
    cqe.timestamp = static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
  }
  const bool shared_queue = receive_->srq != kNone;
  const Push pushed =
      peer.cq.push(arena_, plane_.host(), plane_.slot(), cqe, &responder.cq_intent, payload);
  if (pushed != Push::Done) return false;
  if (shared_queue) {
    responder.srq_taken.store(0, std::memory_order_release);
  } else {
    const std::uint64_t next = responder.rq_head.load(std::memory_order_relaxed) + 1;
    responder.rq_head.store(next, std::memory_order_release);
    peer.receives.prefetch(next);
  }
  responder.cq_intent.store(0, std::memory_order_release);
  receive_.reset();
  fire_due();  // of a multicast message
  if (!peer.cq.has_channel()) return true;
  due_cq_ = peer.cq.index();
  due_solicited_ = solicited || cqe.status != 0;
  return true;
}

void ResponderSide::fire_due() {
  if (due_cq_ == kNone) return;
  CqProducer(arena_, due_cq_).fire(plane_.host(), due_solicited_);
  due_cq_ = kNone;
}

// Its owner gets an error completion and both ends break. UC drops what does not fit and keeps the
// receive.
Outcome ResponderSide::receive_failed(Peer& peer, const Arrival& arrival, WcStatus peer_status,
                                      WcStatus status, Cause cause, std::uint64_t detail) {
  const bool is_uc = arrival.service == QpType::Uc;
  if (is_uc && cause == Cause::RemoteLength && receive_->srq == kNone) {
    return Outcome::dropped(cause, detail);
  }
  if (has_left(peer)) return is_uc ? Outcome::dropped() : Outcome::wait();
  complete_receive_in_error(peer, peer_status, cause);
  break_queue_pair(plane_, *peer.entry, cause, std::nullopt);
  Outcome outcome = is_uc ? Outcome::dropped(cause, detail) : Outcome::fail(status, cause, detail);
  outcome.peer_status = peer_status;
  return outcome;
}

void ResponderSide::complete_receive_in_error(Peer& peer, WcStatus status, Cause cause) {
  Cqe cqe;
  cqe.qpn = peer.qpn;
  cqe.wqe = receive_->id;
  cqe.srq = receive_->srq;
  cqe.status = static_cast<std::uint32_t>(status);
  cqe.vendor_err = static_cast<std::uint32_t>(cause);
  cqe.opcode = static_cast<std::uint32_t>(WcOpcode::Recv);
  cqe.bits = cqe_bit::kReceive;
  if (!push_receive(peer, cqe, true)) lose_queue(peer);
}

}  // namespace ib::hca
