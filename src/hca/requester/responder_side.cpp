// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding memory, filling it, and refusing; the receives are in responder_receive.cpp. Checks are
// in the order in which a responder makes them [IBA1 9.7.4.1]; each failure names the completion
// status of both sides.
#include "hca/requester/responder_side.h"

#include "hca/queues/broken_queue_pair.h"

#include <algorithm>

namespace ib::hca {

using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

// An XRC target belongs to no PD: the SRQ that the request names determines the PD, and a request
// that names none reaches any region of the target's owner.
//
// Not returned by value: that goes through the stack in a way that stalls for ten nanoseconds.
void ResponderSide::responder_of(const Peer& peer, const Arrival& arrival, std::uint32_t srq,
                                 Responder& responder) const {
  responder.owner_slot = peer.entry->id.owner_slot;
  responder.pd = peer.entry->id.pd;
  responder.qpn = peer.qpn;
  const SrqEntry* entry = srq == kNone ? nullptr : arena_.srq(srq);
  if (entry == nullptr) return;
  if (arrival.service == QpType::XrcSend &&
      (entry->id.generation.load(std::memory_order_acquire) == 0 ||
       entry->id.srqn != arrival.srqn || entry->id.xrcd != peer.entry->id.xrcd)) {
    responder.pd = Responder::kAnyPd;
    return;
  }
  responder.owner_slot = entry->id.owner_slot;
  responder.pd = entry->id.pd;
}

Outcome ResponderSide::find_memory(Peer& peer, const Arrival& arrival, std::uint64_t length,
                                   std::uint32_t access, Stretch& out) {
  Access granted;
  if ((peer.entry->id.access & access) != access) {
    granted = {Cause::RemoteQpAccess, false, peer.entry->id.access};
  } else if (length == 0) {
    out.kind = Stretch::Kind::Zero;  // a zero-length request checks no key [IBA1 9.7.4.1.4]
    return Outcome::done();
  } else {
    const bool names_srq = arrival.service == QpType::XrcSend;
    Responder responder;
    responder_of(peer, arrival, names_srq ? srq_index(arrival.srqn) : kNone, responder);
    granted =
        plane_.remote_keys().resolve(responder, arrival.rkey, arrival.address, length, access, out);
  }
  return answer(peer, arrival, granted);
}

Outcome ResponderSide::check_flush(Peer& peer, const Arrival& arrival, std::uint64_t length,
                                   bool whole, std::uint32_t access) {
  if ((peer.entry->id.access & access) != access) {
    return answer(peer, arrival, {Cause::RemoteQpAccess, false, peer.entry->id.access});
  }
  const bool names_srq = arrival.service == QpType::XrcSend;
  Responder responder;
  responder_of(peer, arrival, names_srq ? srq_index(arrival.srqn) : kNone, responder);
  const RemoteKeys& keys = plane_.remote_keys();
  return answer(peer, arrival,
                whole ? keys.check(responder, arrival.rkey, access)
                      : keys.check(responder, arrival.rkey, arrival.address, length, access));
}

// A bad key breaks the peer too (RC) or drops the message (UC).
Outcome ResponderSide::answer(Peer& peer, const Arrival& arrival, const Access& granted) {
  if (granted.ok()) return Outcome::done();
  if (granted.blocked) return Outcome::wait();
  const bool invalid = granted.cause == Cause::RemoteQpAccess;
  Outcome nak =
      refuse(peer, arrival, invalid ? WcStatus::RemInvReqErr : WcStatus::RemAccessErr, granted);
  const bool answered = nak.kind == Outcome::Kind::Fail && !invalid;
  if (answered && arrival.opcode == WrOpcode::RdmaWriteWithImm) {
    nak.peer_status = fail_receive_of_write(peer, arrival, granted.cause);
  }
  return nak;
}

// Its owner, or softibd after its owner's death, took it away while this request ran: then nothing
// that was found wrong is an answer of the responder. States go before keys (teardown.cpp).
bool ResponderSide::has_left(const Peer& peer) {
  return peer.entry->id.qpn.load(std::memory_order_acquire) != peer.qpn ||
         !verbs::receives(peer.entry->id.state.load(std::memory_order_acquire));
}

// A write with immediate that may not write: the receive that it would have completed ends with a
// local access error [IBA1 11.6.2], if there is one. The peer is broken already; its owner does not
// flush the other receives before this OpScope ends.
WcStatus ResponderSide::fail_receive_of_write(Peer& peer, const Arrival& arrival, Cause cause) {
  if (!receive_ && !take_receive(peer, arrival).is_done()) return WcStatus::Success;
  complete_receive_in_error(peer, WcStatus::LocAccessErr, cause);
  return WcStatus::LocAccessErr;
}

// Both ends break (RC, XRC), or the message vanishes (UC).
Outcome ResponderSide::refuse(Peer& peer, const Arrival& arrival, WcStatus status,
                              const Access& why) {
  if (arrival.service == QpType::Uc) return Outcome::dropped(why.cause, why.detail);
  if (has_left(peer)) return Outcome::wait();
  const bool access_error = status == WcStatus::RemAccessErr;
  break_queue_pair(plane_, *peer.entry, why.cause,
                   access_error ? verbs::EventType::QpAccessErr : verbs::EventType::QpReqErr);
  return Outcome::fail(status, why.cause, why.detail);
}

Outcome ResponderSide::transfer_failed(Peer& peer, const Arrival& arrival, const Access& access) {
  if (access.blocked) return Outcome::wait();
  if (access.cause == Cause::PeerProcessGone) return Outcome::wait(access.cause, access.detail);
  if (access.cause == Cause::LocalMemoryGone) {
    return Outcome::fail(WcStatus::LocProtErr, access.cause, access.detail);
  }
  if (arrival.service == QpType::Uc) return Outcome::dropped(access.cause, access.detail);
  if (has_left(peer)) return Outcome::wait();
  break_queue_pair(plane_, *peer.entry, access.cause, verbs::EventType::QpAccessErr);
  return Outcome::fail(WcStatus::RemOpErr, access.cause, access.detail);
}

Outcome ResponderSide::place(Peer& peer, const Arrival& arrival, const LocalPieces& pieces,
                             Transfer& transfer, Carried& carried) {
  const TakenReceive& receive = *receive_;
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  Responder responder;
  responder_of(peer, arrival, receive.srq, responder);
  std::uint64_t start = 0;  // of the current element within the message
  for (std::uint32_t i = 0; i < receive.num_sge && start < pieces.total; ++i) {
    const Sge& sge = receive.sge[i];
    const std::uint64_t here = std::min<std::uint64_t>(sge.length, pieces.total - start);
    if (here == 0 || transfer.moved >= start + here) {
      start += here;
      continue;
    }
    Stretch target;
    Sge used = sge;
    used.length = static_cast<std::uint32_t>(here);
    const Access granted = plane_.remote_keys().resolve_receive(responder, used, target);
    if (granted.blocked) return Outcome::wait();
    if (!granted.ok()) {
      return receive_failed(peer, arrival, WcStatus::LocProtErr, WcStatus::RemOpErr,
                            Cause::RemoteReceiveKey, sge.lkey);
    }
    if (target.kind == Stretch::Kind::Remote && bytes <= kInlineScatter) {
      Stretch buffer;
      buffer.pointer = carried.bytes;
      const Access gathered =
          plane_.mover().write(pieces, 0, buffer, 0, bytes);  // into a stack here
      if (!gathered.ok()) return transfer_failed(peer, arrival, gathered);
      carried.used = true;
      return Outcome::done();
    }
    const Outcome moved = transfer_until(
        start + here, transfer, peer, arrival, [&](std::uint64_t done, std::uint64_t step) {
          return plane_.mover().write(pieces, done, target, done - start, step);
        });
    if (!moved.is_done()) return moved;
    start += here;
  }
  return Outcome::done();
}

Access ResponderSide::place_datagram(const Peer& peer, const Arrival& arrival,
                                     const LocalPieces& pieces) {
  const TakenReceive& receive = *receive_;
  Responder responder;
  responder_of(peer, arrival, receive.srq, responder);
  const std::uint64_t begin = arrival.is_global ? 0 : verbs::kGrhBytes;
  std::uint64_t start = 0;
  for (std::uint32_t i = 0; i < receive.num_sge && start < pieces.total; ++i) {
    const std::uint64_t end = std::min<std::uint64_t>(start + receive.sge[i].length, pieces.total);
    const std::uint64_t from = std::max(start, begin);
    if (from < end) {
      Stretch stretch;
      Sge used = receive.sge[i];
      used.length = static_cast<std::uint32_t>(end - start);
      const Access granted = plane_.remote_keys().resolve_receive(responder, used, stretch);
      if (!granted.ok()) return granted;
      const Access moved = plane_.mover().write(pieces, from, stretch, from - start, end - from);
      if (!moved.ok()) return moved;
    }
    start = end;
  }
  return {};
}

// Only a type 2 window bound to the peer can be named [IBA1 9.4.1.1.3]. Another key is an error of
// class J [IBA1 9.9.6.3]: the receive fails, the peer breaks, and no NAK goes to the requester,
// whose retries run out.
Outcome ResponderSide::invalidate(Peer& peer, const Arrival& arrival) {
  const std::uint32_t rkey = arrival.imm;
  KeyEntry* key = arena_.key(key_index(rkey));
  const bool usable = key != nullptr && rkey != 0 &&
                      key->id.key.load(std::memory_order_acquire) == rkey &&
                      key->id.state.load(std::memory_order_acquire) == KeyState::Valid &&
                      key->id.owner_slot == peer.entry->id.owner_slot &&
                      key->id.kind == KeyKind::Window2 && key->id.window_qpn == peer.qpn;
  if (!usable) {
    if (arrival.service == QpType::Uc) return Outcome::dropped(Cause::RemoteInvalidate, rkey);
    if (has_left(peer)) return Outcome::wait();
    complete_receive_in_error(peer, WcStatus::MwBindErr, Cause::RemoteInvalidate);
    break_queue_pair(plane_, *peer.entry, Cause::RemoteInvalidate, std::nullopt);
    return Outcome::wait(Cause::RemoteInvalidate, rkey);
  }
  unbind_window(arena_, *key);
  return Outcome::done();
}

}  // namespace ib::hca
