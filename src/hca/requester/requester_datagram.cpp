// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unreliable datagrams [IBA1 9.8.3]: to one queue pair or to all attached to a multicast group; and
// those of queue pairs 0 and 1 [IBA1 3.9.2, 13.5].
// What a receiver does not want is dropped without a word to the sender, but for the trace.
#include "base/big_endian.h"
#include "hca/requester/requester.h"

#include <algorithm>
#include <bit>

namespace ib::hca {

using verbs::kGrhBytes;
using verbs::kMadBytes;
using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;

bool receives_datagrams(std::uint32_t state) {
  const auto s = static_cast<QpState>(state);
  return s == QpState::Rtr || s == QpState::Rts || s == QpState::Sqd || s == QpState::Sqe;
}

}  // namespace

// Global Route Header [IBA1 8.3], as the receiver finds it in front of its data.
struct Grh {
  Be32 version_class_flow;
  Be16 payload_length;
  std::uint8_t next_header = 0x1b;
  std::uint8_t hop_limit = 0;
  verbs::Gid source{};
  verbs::Gid destination{};
};
static_assert(sizeof(Grh) == kGrhBytes);

Requester::Outcome Requester::execute_datagram(const SendWqe& wqe) {
  LocalPieces pieces;
  Grh grh;
  // Room for the header in front; what it holds is decided below.
  pieces.add(reinterpret_cast<std::byte*>(&grh), kGrhBytes);
  const Outcome gathered = gather(wqe, 0, pieces);
  if (gathered.kind != Outcome::Kind::Done) return gathered;
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  const PortEntry* port = arena_.port(own_->id.port);
  if (port == nullptr || bytes > verbs::mtu_bytes(port->mtu.load(std::memory_order_relaxed))) {
    return fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  }
  if (const Outcome own = check_port(own_->id.port); own.kind != Outcome::Kind::Done) return own;
  if (config_.type == QpType::Gsi && own_pkey(wqe) == 0) {
    return fail(WcStatus::LocQpOpErr, Cause::PkeyMismatch, wqe.pkey_index);
  }
  if (wqe.av.is_global != 0) describe_route(wqe, bytes, port->gid, grh);
  if (wqe.remote_qpn == kMulticastQpn) {
    datagram_multicast(wqe, pieces);
    return done(bytes);
  }
  QpEntry* target = datagram_target(wqe);
  Outcome sent;
  if (target == nullptr) {
    sent = dropped(Cause::PeerUnknown, wqe.av.dlid);
  } else {
    const Outcome way = check_port(target->id.port);
    if (way.cause == Cause::HcaAsleep) return way;
    sent = datagram_accepted(wqe, bytes, *target, false);
    if (sent.kind == Outcome::Kind::Done) sent = datagram_to(wqe, *target, pieces);
  }
  // Sent, as far as the sender knows, even if it was dropped.
  if (sent.kind == Outcome::Kind::Done || sent.kind == Outcome::Kind::Dropped)
    sent.byte_len = bytes;
  return sent;
}

void Requester::describe_route(const SendWqe& wqe, std::uint32_t bytes, const verbs::Gid& source,
                               Grh& grh) {
  grh.version_class_flow =
      6u << 28 | std::uint32_t{wqe.av.traffic_class} << 20 | (wqe.av.flow_label & 0xfffff);
  // BTH 12, DETH 8, immediate 4, payload padded to 4, ICRC 4.
  const bool imm = wqe.opcode == WrOpcode::SendWithImm;
  grh.payload_length = static_cast<std::uint16_t>((bytes + 3) / 4 * 4 + 24 + (imm ? 4 : 0));
  grh.hop_limit = wqe.av.hop_limit;
  grh.source = source;
  grh.destination = wqe.av.dgid;
}

// Numbers 0 and 1 are of the port, not of a queue pair: whoever has them there.
QpEntry* Requester::datagram_target(const SendWqe& wqe) const {
  std::uint32_t name = wqe.remote_qpn;
  const bool special = name < 2;
  if (special) {
    const PortEntry* port = arena_.port_with_lid(wqe.av.dlid);
    name = port != nullptr ? port->special[name].load(std::memory_order_acquire) : 0;
  }
  QpEntry* target = arena_.qp(qp_index(name));
  const bool there = target != nullptr && name != 0 &&
                     target->id.qpn.load(std::memory_order_acquire) == name &&
                     target->id.lid == wqe.av.dlid;
  if (!there) return nullptr;
  // Their entries have names too, but nobody reaches them by these.
  return verbs::is_special(static_cast<QpType>(target->id.type)) == special ? target : nullptr;
}

// 0: none. Queue pair 1 has those of its port, and says with each message which it means.
std::uint16_t Requester::own_pkey(const SendWqe& wqe) const {
  if (config_.type != QpType::Gsi) return own_->id.pkey;
  const PortEntry* port = arena_.port(own_->id.port);
  const bool known = port != nullptr && wqe.pkey_index < port->pkeys.size();
  return known ? port->pkeys[wqe.pkey_index].load(std::memory_order_acquire) : std::uint16_t{0};
}

// Whether the target's checks let the message in [IBA1 9.6.1, 9.6.2]. Done or Dropped.
Requester::Outcome Requester::datagram_accepted(const SendWqe& wqe, std::uint64_t bytes,
                                                const QpEntry& target, bool multicast) {
  const auto type = static_cast<QpType>(target.id.type);
  if (!verbs::is_datagram(type) || (!multicast && target.id.lid != wqe.av.dlid)) {
    return dropped(Cause::PeerUnknown, wqe.av.dlid);
  }
  const std::uint32_t state = target.id.state.load(std::memory_order_acquire);
  if (!receives_datagrams(state)) return dropped(Cause::PeerNotReady, state);
  const PortEntry* port = arena_.port(target.id.port);
  if (port == nullptr || check_port(target.id.port).kind != Outcome::Kind::Done) {
    return dropped(Cause::PortDown);
  }
  matched_pkey_ = 0;
  if (verbs::is_special(type) && bytes != kMadBytes) return dropped();
  // Subnet management has a virtual lane of its own, without keys [IBA1 10.9.2, C9-55].
  if (type == QpType::Smi || config_.type == QpType::Smi) {
    return type == config_.type ? done(0) : dropped();
  }
  return keys_accepted(wqe, target, *port);
}

Requester::Outcome Requester::keys_accepted(const SendWqe& wqe, const QpEntry& target,
                                            const PortEntry& port) {
  const bool own_qkey = (wqe.remote_qkey & verbs::kControlledQkey) != 0;  // [IBA1 10.2.5]
  const std::uint32_t qkey = own_qkey ? own_->id.qkey : wqe.remote_qkey;
  const bool to_gsi = target.id.type == static_cast<std::uint32_t>(QpType::Gsi);
  const std::uint32_t wanted = to_gsi ? verbs::kGsiQkey : target.id.qkey;
  if (qkey != wanted) {
    return dropped(Cause::QkeyMismatch, std::uint64_t{qkey} << 32 | std::uint64_t{wanted});
  }
  const std::uint16_t pkey = own_pkey(wqe);
  if (partition_accepted(pkey, target, port)) return done(0);
  return dropped(Cause::PkeyMismatch, std::uint64_t{pkey} << 32 | std::uint64_t{target.id.pkey});
}

// Queue pair 1 is in all partitions of its port.
bool Requester::partition_accepted(std::uint16_t pkey, const QpEntry& target,
                                   const PortEntry& port) {
  if (target.id.type != static_cast<std::uint32_t>(QpType::Gsi)) {
    return verbs::share_partition(pkey, target.id.pkey);
  }
  for (std::size_t i = 0; i < port.pkeys.size(); ++i) {
    const std::uint16_t entry = port.pkeys[i].load(std::memory_order_acquire);
    if (entry == 0 || !verbs::share_partition(pkey, entry)) continue;
    matched_pkey_ = static_cast<std::uint16_t>(i);
    return true;
  }
  return false;
}

void Requester::datagram_multicast(const SendWqe& wqe, const LocalPieces& pieces) {
  const std::uint32_t count =
      std::min(arena_.mcast_count().load(std::memory_order_acquire), kMaxMcast);
  const std::uint32_t self = own_->id.qpn.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const McastEntry& entry = *arena_.mcast(i);
    const std::uint32_t qpn = entry.qpn.load(std::memory_order_acquire);
    if (qpn == 0) continue;
    const bool same = wqe.av.is_global != 0 ? entry.mgid == wqe.av.dgid : entry.mlid == wqe.av.dlid;
    if (!same || (qpn == self && config_.block_loopback)) continue;
    QpEntry* target = arena_.qp(qp_index(qpn));
    if (target == nullptr || target->id.qpn.load(std::memory_order_acquire) != qpn) continue;
    Outcome sent = datagram_accepted(wqe, pieces.total - kGrhBytes, *target, true);
    if (sent.kind == Outcome::Kind::Done) sent = datagram_to(wqe, *target, pieces);
    // A group waits for none of its members.
    if (sent.kind == Outcome::Kind::Dropped || sent.cause == Cause::NoReceive) {
      report_drop(wqe, dropped(sent.cause, sent.detail), qpn);
    }
  }
}

// `pieces` begins with the GRH.
Requester::Outcome Requester::datagram_to(const SendWqe& wqe, QpEntry& target,
                                          const LocalPieces& pieces) {
  const std::uint32_t qpn = target.id.qpn.load(std::memory_order_relaxed);
  if (peer_.entry != &target || peer_.qpn != qpn || peer_.generation != target.id.generation) {
    peer_ = Peer{};
    peer_.entry = &target;
    peer_.qpn = qpn;
    peer_.generation = target.id.generation;
    if (target.geometry.rq_ring != 0 &&
        !peer_.receives.set(arena_, target.geometry.rq_ring, target.geometry.rq_slots,
                            target.geometry.rq_stride)) {
      return dropped();
    }
    peer_.cq = CqProducer(arena_, target.id.recv_cq);
  }
  PosterHost& host = plane_.host();
  if (!lock(target.lock.rq_lock, lock_owner(plane_.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return dropped();
  }
  receive_.reset();
  const Outcome taken = take_receive(peer_, 0);
  Outcome sent = taken;
  if (taken.kind == Outcome::Kind::Done && receive_) sent = datagram_deliver(wqe, pieces);
  receive_.reset();
  unlock(target.lock.rq_lock);
  return sent;
}

// Fills and completes the held receive of peer_. Wait: its pages are being moved.
Requester::Outcome Requester::datagram_deliver(const SendWqe& wqe, const LocalPieces& pieces) {
  QpEntry& target = *peer_.entry;
  const bool global = wqe.av.is_global != 0;
  Cqe cqe;
  cqe.qpn = peer_.qpn;
  cqe.wqe = receive_->id;
  cqe.srq = receive_->srq;
  cqe.byte_len = static_cast<std::uint32_t>(pieces.total);
  cqe.src_qp = number_on_wire();
  cqe.pkey_index = matched_pkey_;
  cqe.slid = own_->id.lid;
  cqe.sl = wqe.av.sl;
  cqe.path_bits = wqe.av.src_path_bits;
  cqe.opcode = static_cast<std::uint32_t>(WcOpcode::Recv);
  cqe.bits = cqe_bit::kReceive;
  if (global) cqe.flags |= verbs::wc_flag::kGrh;
  if (wqe.opcode == WrOpcode::SendWithImm) {
    cqe.flags |= verbs::wc_flag::kWithImm;
    cqe.imm = wqe.imm;
  }
  Outcome lost = done(0);
  if (pieces.total > receive_->capacity()) {
    // The message is dropped and the receive stays [IBA1 9.8.3.2.2]; if others have taken later
    // ones of the SRQ meanwhile, it can only be given back as used.
    lost = dropped(Cause::RemoteLength, receive_->capacity());
    if (put_back_receive(target)) return lost;
    lost.peer_status = WcStatus::LocLenErr;
    cqe.status = static_cast<std::uint32_t>(WcStatus::LocLenErr);
    cqe.vendor_err = static_cast<std::uint32_t>(Cause::RemoteLength);
  } else {
    const Access stored = datagram_store(pieces, global);
    if (stored.blocked && put_back_receive(target)) return wait(Cause::None);
    if (stored.cause == Cause::LocalMemoryGone && put_back_receive(target)) {
      return fail(WcStatus::LocProtErr, stored.cause, stored.detail);
    }
    if (!stored.ok()) {
      lost = dropped(Cause::RemoteReceiveKey, stored.detail);
      lost.peer_status = WcStatus::LocProtErr;
      cqe.status = static_cast<std::uint32_t>(WcStatus::LocProtErr);
      cqe.vendor_err = static_cast<std::uint32_t>(Cause::RemoteReceiveKey);
    }
  }
  complete_before_delivery(wqe, static_cast<std::uint32_t>(pieces.total - kGrhBytes));
  const bool is_failure = cqe.status == static_cast<std::uint32_t>(WcStatus::LocProtErr);
  (void)push_receive(peer_, cqe, (wqe.flags & verbs::send_flag::kSolicited) != 0);
  if (is_failure) break_peer(target, static_cast<Cause>(cqe.vendor_err), std::nullopt);
  count(target.responder, pieces.total - kGrhBytes);
  return lost;
}

// Undoes take_receive. False: others took later receives of the SRQ meanwhile.
bool Requester::put_back_receive(QpEntry& target) {
  if (receive_->srq == kNone) return true;  // rq_head has not moved yet
  SrqEntry& srq = *arena_.srq(receive_->srq);
  PosterHost& host = plane_.host();
  if (!lock(srq.consumer.lock, lock_owner(plane_.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return false;
  }
  const std::uint64_t head = srq.consumer.head.load(std::memory_order_relaxed);
  TakenReceive newest;
  const bool mine = head > 0 && peer_.receives.copy(head - 1, newest) && newest.id == receive_->id;
  if (mine) {
    srq.consumer.head.store(head - 1, std::memory_order_release);
    target.responder.srq_taken.store(0, std::memory_order_release);
  }
  unlock(srq.consumer.lock);
  return mine;
}

// Header and payload into the held receive. Without a GRH its 40 bytes are left alone
// [IBA1 11.4.1.2].
Access Requester::datagram_store(const LocalPieces& pieces, bool global) {
  const TakenReceive& receive = *receive_;
  Responder responder;
  find_responder(peer_, receive.srq, 0, responder);
  const std::uint64_t begin = global ? 0 : kGrhBytes;
  std::uint64_t start = 0;
  for (std::uint32_t i = 0; i < receive.num_sge && start < pieces.total; ++i) {
    const std::uint64_t end = std::min<std::uint64_t>(start + receive.sge[i].length, pieces.total);
    const std::uint64_t from = std::max(start, begin);
    if (from < end) {
      Stretch stretch;
      Sge used = receive.sge[i];
      used.length = static_cast<std::uint32_t>(end - start);
      const Access granted = plane_.receive(responder, used, stretch);
      if (!granted.ok()) return granted;
      const Access moved = plane_.write(pieces, from, stretch, from - start, end - from);
      if (!moved.ok()) return moved;
    }
    start = end;
  }
  return {};
}

}  // namespace ib::hca
