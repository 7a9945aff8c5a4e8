// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the requests of a connected queue pair (RC, UC, XRC) do. Checks are in the order in which a
// responder makes them [IBA1 9.7.4.1]; each failure names the completion status of both sides.
#include "hca/requester/requester.h"

#include <algorithm>
#include <bit>

namespace ib::hca {

namespace access = verbs::access;
using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

bool answers(QpState state) {
  return state == QpState::Rtr || state == QpState::Rts || state == QpState::Sqd ||
         state == QpState::Sqe;
}

bool types_match(QpType mine, std::uint32_t peers) {
  const auto wanted = mine == QpType::XrcSend ? QpType::XrcRecv : mine;
  return peers == static_cast<std::uint32_t>(wanted) ||
         (mine == QpType::XrcRecv && peers == static_cast<std::uint32_t>(QpType::XrcSend));
}

}  // namespace

// Finds the connected queue pair and checks that it answers. Wait: it does not (yet).
Requester::Outcome Requester::bind_peer(Peer*& peer) {
  if (const Outcome own = check_port(own_->id.port); own.kind != Outcome::Kind::Done) return own;
  const std::uint32_t dest = own_->id.dest_qpn;
  QpEntry* entry = arena_.qp(qp_index(dest));
  const std::uint32_t self = own_->id.qpn.load(std::memory_order_relaxed);
  if (entry == nullptr || dest == 0 || entry->id.qpn.load(std::memory_order_acquire) != dest) {
    const auto gone =
        static_cast<Cause>(own_->geometry.error_cause.load(std::memory_order_relaxed));
    if (gone == Cause::PeerProcessGone) {
      return wait(gone, own_->geometry.error_detail.load(std::memory_order_relaxed));
    }
    return wait(Cause::PeerUnknown, own_->id.dlid);
  }
  const Outcome way = check_port(entry->id.port);
  if (way.cause == Cause::HcaAsleep) return way;
  const std::uint32_t state = entry->id.state.load(std::memory_order_acquire);
  if (!answers(static_cast<QpState>(state))) {
    // Broken by this very request, and nobody says so [IBA1 9.9.6.3, class J].
    const auto why =
        static_cast<Cause>(entry->geometry.error_cause.load(std::memory_order_relaxed));
    if (why == Cause::RemoteInvalidate && waiting_for_ == why) return wait(why);
    return wait(Cause::PeerNotReady, state);
  }
  if (entry->id.dest_qpn != self || entry->id.lid != own_->id.dlid ||
      !types_match(config_.type, entry->id.type)) {
    return wait(Cause::PeerUnknown, own_->id.dlid);
  }
  if (way.kind != Outcome::Kind::Done) return way;
  // Same partition: equal base, at least one full member [IBA1 10.9.3].
  if (!verbs::share_partition(entry->id.pkey, own_->id.pkey)) {
    return wait(Cause::PkeyMismatch,
                std::uint64_t{own_->id.pkey} << 32 | std::uint64_t{entry->id.pkey});
  }
  if (peer_.entry != entry || peer_.qpn != dest || peer_.generation != entry->id.generation) {
    peer_ = Peer{};
    peer_.entry = entry;
    peer_.qpn = dest;
    peer_.generation = entry->id.generation;
    if (entry->geometry.rq_ring != 0) {
      (void)peer_.receives.set(arena_, entry->geometry.rq_ring, entry->geometry.rq_slots,
                               entry->geometry.rq_stride);
    }
    peer_.cq = CqProducer(arena_, entry->id.recv_cq);
  }
  agree(*entry);
  if (!peer_.in_step) {
    const auto& mine = own_->geometry;
    return wait(Cause::PsnMismatch,
                std::uint64_t{mine.sq_psn} << 32 | std::uint64_t{entry->geometry.rq_psn});
  }
  peer = &peer_;
  return done(0);
}

// Whether the two ends were given the same numbers, as the first packets between them would show.
// Compared when one of them was modified, not for each message.
//
// PSNs: the responder answers a request from the future with a NAK for the number it expects, which
// is none of the requester's, so its retries run out. To one from the past it repeats an old
// answer [IBA1 9.7.5.1]; that may acknowledge requests which were never carried out, and an adapter
// then loses as many messages without a word. Here the retries run out, too. A UC responder takes
// the number of the first packet that comes [IBA1 9.8.2.2].
// Path MTUs: one packet has to fit the smaller; the first of several has to fill the responder's
// exactly [IBA1 9.7.4.1.6].
void Requester::agree(const QpEntry& peer) {
  const std::uint64_t changes = arena_.header().changes.load(std::memory_order_acquire);
  if (peer_.compared && peer_.compared_as_of == changes) return;
  const auto& mine = own_->geometry;
  peer_.in_step = config_.type == QpType::Uc || mine.sq_psn == peer.geometry.rq_psn;
  peer_.longest = mine.mtu == peer.geometry.mtu
                      ? kMaxMessage
                      : verbs::mtu_bytes(std::min(mine.mtu, peer.geometry.mtu));
  peer_.compared_as_of = changes;
  peer_.compared = true;
}

std::uint64_t Requester::path_mtus(const Peer& peer) const {
  return std::uint64_t{verbs::mtu_bytes(own_->geometry.mtu)} << 32 |
         std::uint64_t{verbs::mtu_bytes(peer.entry->geometry.mtu)};
}

Requester::Outcome Requester::too_long_for_path(Peer& peer) {
  return refused(peer, WcStatus::RemInvReqErr, {Cause::MtuMismatch, false, path_mtus(peer)});
}

Requester::Outcome Requester::execute_connected(const SendWqe& wqe) {
  Peer* peer = nullptr;
  Outcome bound = bind_peer(peer);
  if (bound.cause == Cause::RemoteInvalidate) bound.detail = wqe.imm;
  if (bound.kind != Outcome::Kind::Done) {
    const bool same_peer = bound.cause == Cause::PortDown || bound.cause == Cause::HcaAsleep;
    if (!same_peer) {  // whoever answers next gets the message from its start
      moved_ = 0;
      receive_.reset();
    }
    if (config_.type != QpType::Uc || bound.cause == Cause::HcaAsleep) return bound;
    // Nobody answers for UC, so nobody is waited for: the message is lost on the way [IBA1 9.8.2].
    LocalPieces pieces;
    const Outcome gathered = gather(wqe, 0, pieces);
    return gathered.kind == Outcome::Kind::Done ? dropped(bound.cause, bound.detail) : gathered;
  }
  IB_ASSERT(peer != nullptr);
  switch (wqe.opcode) {
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm: return rdma_write(*peer, wqe);
    case WrOpcode::RdmaRead: return rdma_read(*peer, wqe);
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd: return atomic(*peer, wqe);
    case WrOpcode::AtomicWrite: return atomic_write(*peer, wqe);
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv: return send(*peer, wqe);
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: break;  // execute() runs them: they have no peer
  }
  return fail(WcStatus::LocQpOpErr, Cause::None);
}

// Bytes that the elements of a request name.
std::uint64_t Requester::asked_for(const SendWqe& wqe) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) bytes += wqe.sge[i].length;
  return bytes;
}

// This process's side of the data: SGEs against their keys, or inline bytes.
Requester::Outcome Requester::gather(const SendWqe& wqe, std::uint32_t access,
                                     LocalPieces& pieces) const {
  if (wqe.stored && wqe.inline_data) {
    // Only read from: gather() for writing never sees inline data (check()).
    pieces.add(const_cast<std::byte*>(wqe.kept_inline), wqe.inline_bytes);
    return done(0);
  }
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
    const Sge& sge = wqe.sge[i];
    if (wqe.inline_data) {
      pieces.add(std::bit_cast<std::byte*>(sge.address), sge.length);
      continue;
    }
    const Access local = plane_.local(sge, config_.pd, access, pieces);
    if (!local.ok()) return fail(WcStatus::LocProtErr, local.cause, local.detail);
  }
  if (pieces.total > kMaxMessage) {
    return fail(WcStatus::LocLenErr, Cause::LocalLength, pieces.total);
  }
  return done(0);
}

// An XRC target belongs to no PD: the SRQ that the request names says whose memory is meant, and
// one that names none reaches any region of the target's owner.
void Requester::find_responder(const Peer& peer, std::uint32_t srq, std::uint32_t srqn,
                               Responder& responder) const {
  responder.owner_slot = peer.entry->id.owner_slot;
  responder.pd = peer.entry->id.pd;
  responder.qpn = peer.qpn;
  const SrqEntry* entry = srq == kNone ? nullptr : arena_.srq(srq);
  if (entry == nullptr) return;
  if (config_.type == QpType::XrcSend &&
      (entry->id.generation.load(std::memory_order_acquire) == 0 || entry->id.srqn != srqn ||
       entry->id.xrcd != peer.entry->id.xrcd)) {
    responder.pd = Responder::kAnyPd;
    return;
  }
  responder.owner_slot = entry->id.owner_slot;
  responder.pd = entry->id.pd;
}

// The remote side of RDMA and atomics. A bad key breaks the peer too (RC) or drops the message
// (UC).
Requester::Outcome Requester::remote_stretch(Peer& peer, const SendWqe& wqe, std::uint64_t length,
                                             std::uint32_t access, Stretch& out) {
  Access granted;
  if ((peer.entry->id.access & access) != access) {
    granted = {Cause::RemoteQpAccess, false, peer.entry->id.access};
  } else if (length == 0) {
    out.kind = Stretch::Kind::Zero;  // a zero-length request checks no key [IBA1 9.7.4.1.4]
    return done(0);
  } else {
    const std::uint32_t srq = config_.type == QpType::XrcSend ? srq_index(wqe.remote_srqn) : kNone;
    Responder responder;
    find_responder(peer, srq, wqe.remote_srqn, responder);
    granted = plane_.remote(responder, wqe.rkey, wqe.remote_address, length, access, out);
  }
  if (granted.ok()) return done(0);
  if (granted.blocked) return wait(Cause::None);
  const bool invalid = granted.cause == Cause::RemoteQpAccess;
  Outcome nak = refused(peer, invalid ? WcStatus::RemInvReqErr : WcStatus::RemAccessErr, granted);
  const bool answered = nak.kind == Outcome::Kind::Fail && !invalid;
  if (answered && wqe.opcode == WrOpcode::RdmaWriteWithImm) {
    nak.peer_status = fail_receive_of_write(peer, wqe, granted.cause);
  }
  return nak;
}

// Its owner, or softibd after its owner's death, took it away while this request ran: then nothing
// that was found wrong is an answer of the responder. States go before keys (teardown.cpp).
bool Requester::has_left(const Peer& peer) const {
  return peer.entry->id.qpn.load(std::memory_order_acquire) != peer.qpn ||
         !answers(static_cast<QpState>(peer.entry->id.state.load(std::memory_order_acquire)));
}

// A write with immediate that may not write: the receive that it would have completed ends with a
// local access error [IBA1 11.6.2], if there is one. The peer is broken already; its owner does not
// flush the other receives before this OpScope ends.
WcStatus Requester::fail_receive_of_write(Peer& peer, const SendWqe& wqe, Cause cause) {
  if (!receive_ && take_receive(peer, wqe.remote_srqn).kind != Outcome::Kind::Done) {
    return WcStatus::Success;
  }
  complete_receive_in_error(peer, WcStatus::LocAccessErr, cause);
  return WcStatus::LocAccessErr;
}

// The responder NAKs: both ends break (RC, XRC), or the message vanishes (UC).
Requester::Outcome Requester::refused(Peer& peer, WcStatus status, const Access& why) {
  if (config_.type == QpType::Uc) return dropped(why.cause, why.detail);
  if (has_left(peer)) return wait(Cause::None);
  const bool access_error = status == WcStatus::RemAccessErr;
  break_peer(*peer.entry, why.cause,
             access_error ? verbs::EventType::QpAccessErr : verbs::EventType::QpReqErr);
  return fail(status, why.cause, why.detail);
}

// A copy failed half-way: the memory or the process behind a checked key is gone.
Requester::Outcome Requester::transfer_failed(Peer& peer, const Access& access) {
  if (access.blocked) return wait(Cause::None);
  if (access.cause == Cause::PeerProcessGone) return wait(access.cause, access.detail);
  if (access.cause == Cause::LocalMemoryGone) {
    return fail(WcStatus::LocProtErr, access.cause, access.detail);
  }
  if (config_.type == QpType::Uc) return dropped(access.cause, access.detail);
  if (has_left(peer)) return wait(Cause::None);
  break_peer(*peer.entry, access.cause, verbs::EventType::QpAccessErr);
  return fail(WcStatus::RemOpErr, access.cause, access.detail);
}

// Takes the next step of a long transfer from the budget. False: spent, go on later.
bool Requester::spend(std::uint64_t left, std::uint64_t& step) {
  step = std::min(left, budget_);
  budget_ -= step;
  return step > 0 || left == 0;
}

Requester::Outcome Requester::rdma_write(Peer& peer, const SendWqe& wqe) {
  LocalPieces pieces;
  const Outcome gathered = gather(wqe, 0, pieces);
  if (gathered.kind != Outcome::Kind::Done) return gathered;
  if (pieces.total > peer.longest) return too_long_for_path(peer);
  Stretch target;
  const Outcome granted = remote_stretch(peer, wqe, pieces.total, access::kRemoteWrite, target);
  if (granted.kind != Outcome::Kind::Done) return granted;
  const bool with_imm = wqe.opcode == WrOpcode::RdmaWriteWithImm;
  if (with_imm && !receive_) {
    const Outcome taken = take_receive(peer, wqe.remote_srqn);
    if (taken.kind != Outcome::Kind::Done) return taken;
  }
  while (moved_ < pieces.total) {
    std::uint64_t step = 0;
    if (!spend(pieces.total - moved_, step)) return wait(Cause::None);
    const Access moved = plane_.write(pieces, moved_, target, moved_, step);
    if (!moved.ok()) return transfer_failed(peer, moved);
    moved_ += step;
  }
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  return with_imm ? deliver(peer, wqe, WcOpcode::RecvRdmaWithImm, bytes) : done(bytes);
}

// The memory that an answer goes to is looked at when the answer comes: what the responder finds
// wrong comes first.
Requester::Outcome Requester::rdma_read(Peer& peer, const SendWqe& wqe) {
  if (limits_.max_rd_atomic == 0) return fail(WcStatus::LocQpOpErr, Cause::ReadDepth);
  const std::uint64_t bytes = asked_for(wqe);
  if (bytes > kMaxMessage) return fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  if (peer.entry->id.max_dest_rd_atomic == 0) {
    return refused(peer, WcStatus::RemInvReqErr, {Cause::ReadDepth, false, 0});
  }
  Stretch source;
  const Outcome granted = remote_stretch(peer, wqe, bytes, access::kRemoteRead, source);
  if (granted.kind != Outcome::Kind::Done) return granted;
  LocalPieces pieces;
  const Outcome gathered = gather(wqe, access::kLocalWrite, pieces);
  if (gathered.kind != Outcome::Kind::Done) return gathered;
  // Its answers come in packets of another length than this end expects [IBA1 9.9.2.4.1].
  if (bytes > peer.longest) {
    return fail(WcStatus::LocLenErr, Cause::MtuMismatch, path_mtus(peer));
  }
  while (moved_ < pieces.total) {
    std::uint64_t step = 0;
    if (!spend(pieces.total - moved_, step)) return wait(Cause::None);
    const Access moved = plane_.read(pieces, moved_, source, moved_, step);
    if (!moved.ok()) return transfer_failed(peer, moved);
    moved_ += step;
  }
  return done(static_cast<std::uint32_t>(pieces.total));
}

Requester::Outcome Requester::atomic(Peer& peer, const SendWqe& wqe) {
  if (limits_.max_rd_atomic == 0) return fail(WcStatus::LocQpOpErr, Cause::ReadDepth);
  const std::uint64_t bytes = asked_for(wqe);
  if (bytes != sizeof(std::uint64_t)) {
    return fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  }
  if (wqe.remote_address % sizeof(std::uint64_t) != 0) {
    return refused(peer, WcStatus::RemInvReqErr,
                   {Cause::RemoteAlignment, false, wqe.remote_address});
  }
  if (peer.entry->id.max_dest_rd_atomic == 0) {
    return refused(peer, WcStatus::RemInvReqErr, {Cause::ReadDepth, false, 0});
  }
  Stretch target;
  const Outcome granted =
      remote_stretch(peer, wqe, sizeof(std::uint64_t), access::kRemoteAtomic, target);
  if (granted.kind != Outcome::Kind::Done) return granted;
  // Before the word changes: on an adapter it has, by the time the old value finds no place.
  LocalPieces pieces;
  const Outcome gathered = gather(wqe, access::kLocalWrite, pieces);
  if (gathered.kind != Outcome::Kind::Done) return gathered;
  const bool swap = wqe.opcode == WrOpcode::AtomicCmpSwap;
  std::uint64_t old = 0;
  const Access acted = plane_.atomic(target, swap ? &wqe.compare_add : nullptr,
                                     swap ? wqe.swap : wqe.compare_add, old);
  if (!acted.ok()) return transfer_failed(peer, acted);
  Stretch value;
  value.pointer = reinterpret_cast<std::byte*>(&old);
  const Access stored = plane_.read(pieces, 0, value, 0, sizeof old);  // from this very stack
  return stored.ok() ? done(sizeof(std::uint64_t)) : transfer_failed(peer, stored);
}

// ATOMIC WRITE [IBA1 1.6 annex A19]: 8 bytes, all at once; needs remote write.
Requester::Outcome Requester::atomic_write(Peer& peer, const SendWqe& wqe) {
  if (limits_.max_rd_atomic == 0) return fail(WcStatus::LocQpOpErr, Cause::ReadDepth);
  if (wqe.remote_address % sizeof(std::uint64_t) != 0) {
    return refused(peer, WcStatus::RemInvReqErr,
                   {Cause::RemoteAlignment, false, wqe.remote_address});
  }
  if (peer.entry->id.max_dest_rd_atomic == 0) {
    return refused(peer, WcStatus::RemInvReqErr, {Cause::ReadDepth, false, 0});
  }
  Stretch target;
  const Outcome granted =
      remote_stretch(peer, wqe, sizeof(std::uint64_t), access::kRemoteWrite, target);
  if (granted.kind != Outcome::Kind::Done) return granted;
  std::uint64_t value = wqe.compare_add;
  LocalPieces piece;
  piece.add(reinterpret_cast<std::byte*>(&value), sizeof value);
  const Access moved = plane_.write(piece, 0, target, 0, sizeof value);
  return moved.ok() ? done(sizeof value) : transfer_failed(peer, moved);
}

Requester::Outcome Requester::send(Peer& peer, const SendWqe& wqe) {
  LocalPieces pieces;
  const Outcome gathered = gather(wqe, 0, pieces);
  if (gathered.kind != Outcome::Kind::Done) return gathered;
  const bool fits_path = pieces.total <= peer.longest;
  if (!fits_path && config_.type == QpType::Uc) return too_long_for_path(peer);
  if (!receive_) {
    const Outcome taken = take_receive(peer, wqe.remote_srqn);
    if (taken.kind != Outcome::Kind::Done) return taken;
  }
  if (!fits_path) {
    return receive_failed(peer, WcStatus::LocLenErr, WcStatus::RemInvReqErr, Cause::MtuMismatch,
                          path_mtus(peer));
  }
  const std::uint64_t capacity = receive_->capacity();
  if (pieces.total > capacity) {
    return receive_failed(peer, WcStatus::LocLenErr, WcStatus::RemInvReqErr, Cause::RemoteLength,
                          capacity);
  }
  return scatter(peer, wqe, pieces);
}

}  // namespace ib::hca
