// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unreliable datagrams [IBA1 9.8.3]: to one queue pair or to all attached to a multicast group; and
// those of queue pairs 0 and 1 [IBA1 3.9.2, 13.5].
// A datagram that the receiver does not want is dropped without a word to the sender, but traced.
#include "hca/layout/gid_lookup.h"
#include "hca/layout/large_datagrams.h"
#include "hca/layout/shm_lock.h"
#include "hca/queues/broken_queue_pair.h"
#include "hca/requester/attempt.h"
#include "hca/requester/datagram_checks.h"
#include "hca/requester/datagram_way.h"
#include "hca/requester/grh.h"
#include "hca/requester/message_count.h"
#include "hca/requester/partition_check.h"

#include <algorithm>
#include <array>

namespace ib::hca {

using verbs::kGrhBytes;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

// Numbers 0 and 1 are of the port, not of a queue pair: they name the one that has that place.
QpEntry* target_of(const Attempt& a, std::uint32_t index) {
  const Arena& arena = a.plane.arena();
  const PortEntry* port = arena.port(index);
  if (port == nullptr) return nullptr;
  std::uint32_t name = a.wqe.remote_qpn;
  const bool special = name < 2;
  if (special) name = port->special[name].load(std::memory_order_acquire);
  QpEntry* target = arena.qp(qp_index(name));
  const bool there = target != nullptr && name != 0 &&
                     target->id.qpn.load(std::memory_order_acquire) == name &&
                     target->id.port == index;
  if (!there) return nullptr;
  // Their entries have names too, but no message reaches them by these.
  return verbs::is_special(target->id.type) == special ? target : nullptr;
}

// Which of the LIDs of its port a packet came to; 0 for one to a group, or without a LID.
std::uint8_t path_bits_of(const Attempt& a, const QpEntry& target) {
  const std::uint16_t lid = a.wqe.av.dlid;
  const std::uint16_t base = target.id.lid;
  constexpr std::uint16_t kMost = 1u << 7;  // LMC 7
  const bool is_one = a.wqe.remote_qpn != kMulticastQpn && base != 0 && lid > base;
  return is_one && lid - base < kMost ? static_cast<std::uint8_t>(lid - base) : std::uint8_t{0};
}

// The completion of the held receive, if all goes well.
void describe_datagram(const Attempt& a, const Peer& peer, std::uint64_t total, Cqe& cqe) {
  describe_receive(a.arrival, peer.qpn, WcOpcode::Recv, static_cast<std::uint32_t>(total), cqe);
  cqe.wqe = a.responder.receive().id;
  cqe.srq = a.responder.receive().srq;
  cqe.pkey_index = a.arrival.pkey_index;
  cqe.sl = a.arrival.sl;
  cqe.path_bits = path_bits_of(a, *peer.entry);
  if (a.arrival.is_global) cqe.flags |= verbs::wc_flag::kGrh;
}

void set_error(Cqe& cqe, WcStatus status, Cause cause) {
  cqe.status = static_cast<std::uint32_t>(status);
  cqe.vendor_err = static_cast<std::uint32_t>(cause);
}

// Fills and completes the held receive. Wait: its pages are being moved.
Outcome deliver_datagram(Attempt& a, const LocalPieces& pieces) {
  Peer& peer = a.peer();
  Cqe cqe;
  describe_datagram(a, peer, pieces.total, cqe);
  Outcome lost = Outcome::done();
  const std::uint64_t capacity = a.responder.receive().capacity();
  if (pieces.total > capacity) {
    // The message is dropped and the receive stays [IBA1 9.8.3.2.2]; if others have taken later
    // ones of the SRQ meanwhile, it can only be given back as used.
    lost = Outcome::dropped(Cause::RemoteLength, capacity);
    if (a.responder.put_back_receive(peer)) return lost;
    lost.peer_status = WcStatus::LocLenErr;
    set_error(cqe, lost.peer_status, Cause::RemoteLength);
  } else {
    const Access stored = a.responder.place_datagram(peer, a.arrival, pieces);
    if (stored.blocked && a.responder.put_back_receive(peer)) return Outcome::wait();
    if (stored.cause == Cause::LocalMemoryGone && a.responder.put_back_receive(peer)) {
      return Outcome::fail(WcStatus::LocProtErr, stored.cause, stored.detail);
    }
    if (!stored.ok()) {
      lost = Outcome::dropped(Cause::RemoteReceiveKey, stored.detail);
      lost.peer_status = WcStatus::LocProtErr;
      set_error(cqe, lost.peer_status, Cause::RemoteReceiveKey);
    }
  }
  a.queue.complete_before_delivery(a.wqe, static_cast<std::uint32_t>(pieces.total - kGrhBytes));
  const bool is_failure = lost.peer_status == WcStatus::LocProtErr;
  if (!a.responder.push_receive(peer, cqe, a.arrival.solicited)) a.responder.lose_queue(peer);
  if (is_failure) {
    break_queue_pair(a.plane, *peer.entry, Cause::RemoteReceiveKey, std::nullopt);
  }
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  if (lost.is_done()) {
    const DatagramSize size{bytes, a.transfer.more_packets};
    count_received(a.plane.arena(), a.own, a.wqe, size, *peer.entry);
  }
  return lost;
}

// `pieces` begins with the GRH.
Outcome send_to(Attempt& a, QpEntry& target, const LocalPieces& pieces) {
  if (!a.peers.remember(target, target.id.qpn.load(std::memory_order_relaxed))) {
    return Outcome::dropped();
  }
  PosterHost& host = a.plane.host();
  if (!lock(target.lock.rq_lock, lock_owner(a.plane.slot()),
            [&host](std::uint32_t round) { host.relax(round); })) {
    return Outcome::dropped();
  }
  a.responder.forget_receive();
  Outcome sent = a.responder.take_receive(a.peer(), a.arrival);
  if (sent.is_done() && a.responder.holds_receive()) sent = deliver_datagram(a, pieces);
  a.responder.forget_receive();
  unlock(target.lock.rq_lock);
  return sent;
}

// The queue pair of an entry of the group, or nullptr if it gets nothing from this port.
QpEntry* member_of(const Attempt& a, std::uint32_t qpn, const PortEntry& from) {
  const Arena& arena = a.plane.arena();
  QpEntry* target = arena.qp(qp_index(qpn));
  if (target == nullptr || target->id.qpn.load(std::memory_order_acquire) != qpn) return nullptr;
  const PortEntry* to = arena.port(target->id.port);
  return to != nullptr && is_joined(from, *to) ? target : nullptr;
}

// The ports that a message to a group has come to: each gets it once, however many members it has.
// Of a group with more ports than fit, ports with several members count it several times.
class PortsReached {
 public:
  // Returns true the first time.
  bool add(std::uint32_t port) {
    const auto end = ports_.begin() + count_;
    if (std::find(ports_.begin(), end, port) != end) return false;
    if (count_ < ports_.size()) ports_[count_++] = port;
    return true;
  }

 private:
  std::array<std::uint32_t, 64> ports_{};
  std::uint32_t count_ = 0;
};

void count_at_port(const Attempt& a, std::uint32_t bytes, std::uint32_t index,
                   PortsReached& reached) {
  PortEntry* port = a.plane.arena().port(index);
  if (port == nullptr || !a.peers.check_port(index).is_done() || !reached.add(index)) return;
  count_at_member(a.plane.arena(), a.own, a.wqe, bytes, *port);
}

// Multicast [IBA1 10.5.2]: to each queue pair that is attached to the group.
void send_to_group(Attempt& a, const PortEntry& from, const LocalPieces& pieces) {
  const Arena& arena = a.plane.arena();
  const verbs::AddressVector& av = a.wqe.av;
  const bool by_gid = av.is_global != 0;
  // A chain that a process has damaged may have no end; none is longer than this.
  const std::uint32_t longest =
      std::min(arena.mcast_count().load(std::memory_order_acquire), kMaxMcast);
  const std::uint32_t self = a.own.id.qpn.load(std::memory_order_relaxed);
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  PortsReached reached;
  if (WayEntry* const way = way_to_group(a, from))
    count_on_way(arena, a.own, a.wqe, {bytes, 0}, *way);
  const Shared32* next = by_gid ? &arena.mcast_by_gid(mcast_chain(av.dgid))
                                : &arena.mcast_by_lid(mcast_chain(av.dlid));
  for (std::uint32_t i = 0; i < longest; ++i) {
    const std::uint32_t number = next->load(std::memory_order_acquire);
    const McastEntry* found = number != 0 ? arena.mcast(number - 1) : nullptr;
    if (found == nullptr) break;
    const McastEntry& entry = *found;
    next = by_gid ? &entry.next_by_gid : &entry.next_by_lid;
    const std::uint32_t qpn = entry.qpn.load(std::memory_order_acquire);
    if (qpn == 0) continue;
    const bool same = by_gid ? entry.mgid == av.dgid : entry.mlid == av.dlid;
    if (!same || (qpn == self && a.config.block_loopback)) continue;
    QpEntry* target = member_of(a, qpn, from);
    if (target == nullptr) continue;
    Outcome sent = way_to_member(a, from, target->id.port).outcome_of(bytes);
    if (sent.is_done()) {
      count_at_port(a, bytes, target->id.port, reached);
      sent = check_datagram(a, bytes, *target);
    }
    if (sent.is_done()) sent = send_to(a, *target, pieces);
    // A group waits for none of its members.
    if (sent.kind == Outcome::Kind::Dropped || sent.cause == Cause::NoReceive) {
      a.reports.dropped(a.wqe, Outcome::dropped(sent.cause, sent.detail), qpn);
    }
  }
}

std::uint32_t mtu_of(const PortEntry& port) {
  return verbs::mtu_bytes(port.mtu.load(std::memory_order_relaxed));
}

Outcome too_long(std::uint32_t bytes) {
  return Outcome::fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
}

// Whether a datagram above the MTU of its sender's port may be that long, whoever gets it.
bool may_be_large(const Attempt& a, std::uint32_t bytes) {
  return a.config.takes_large && a.wqe.remote_qpn != kMulticastQpn &&
         bytes <= verbs::limits::kMaxLargeDatagram;
}

// Whether this receiver takes one that is longer than a packet of its way. A queue pair that is not
// there does not tell what it takes: packets to it are sent and dropped, whatever their number.
Outcome check_length(Attempt& a, const QpEntry* target, const PortEntry& from,
                     const DatagramWay& way, std::uint32_t bytes) {
  if (a.config.takes_large && (target == nullptr || takes_large(*target))) return Outcome::done();
  a.transfer.way = nullptr;
  a.transfer.more_packets = 0;
  return bytes > mtu_of(from) ? too_long(bytes) : way.outcome_of(bytes);
}

Outcome send_to_port(Attempt& a, QpEntry* target, const LocalPieces& pieces) {
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  if (target == nullptr) return Outcome::dropped(Cause::PeerUnknown, a.wqe.av.dlid);
  const Outcome port = a.peers.check_port(target->id.port);
  if (port.cause == Cause::HcaAsleep) {
    // MADs to other ports are behind it, and a sender of MADs tries again by itself.
    return verbs::is_special(a.config.type) ? Outcome::dropped(Cause::PortDown) : port;
  }
  const Outcome accepted = check_datagram(a, bytes, *target);
  return accepted.is_done() ? send_to(a, *target, pieces) : accepted;
}

void describe_route_of(Attempt& a, const PortEntry& from, std::uint32_t bytes,
                       RouteHeader& header) {
  if (!a.arrival.is_global) return;
  const bool immediate = a.wqe.opcode == WrOpcode::SendWithImm && a.transfer.more_packets == 0;
  a.arrival.sl = describe_route(a.wqe.av, from, bytes, immediate, header);
}

// The route header is that of the first packet.
Outcome send_to_one(Attempt& a, const PortEntry& from, const LocalPieces& pieces,
                    RouteHeader& header) {
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  const DatagramWay way = way_to_one(a, from);
  const std::uint32_t most = std::min(way.most, mtu_of(from));
  const bool is_long = bytes > most;
  if (is_long && a.config.takes_large) a.transfer.more_packets = (bytes - 1) / most;
  describe_route_of(a, from, std::min(bytes, most), header);
  // A packet that a port in the middle drops passes some of the ports only, and is counted nowhere.
  a.transfer.way = way.outcome.cause != Cause::WayLane ? way.entry : nullptr;
  if (!way.outcome.is_done()) return way.outcome;
  QpEntry* const target = target_of(a, way.port);
  if (is_long) [[unlikely]] {
    const Outcome length = check_length(a, target, from, way, bytes);
    if (!length.is_done()) return length;
  }
  return send_to_port(a, target, pieces);
}

}  // namespace

Outcome send_datagram(Attempt& a) {
  a.transfer.way = nullptr;
  a.transfer.more_packets = 0;
  LocalPieces& pieces = a.pieces;
  RouteHeader header{};
  // Room for the header in front; what it holds is decided below.
  pieces.add(header.data(), kGrhBytes);
  const Outcome gathered = gather(a, 0);
  if (!gathered.is_done()) return gathered;
  const auto bytes = static_cast<std::uint32_t>(pieces.total - kGrhBytes);
  const PortEntry* port = a.plane.arena().port(a.own.id.port);
  if (port == nullptr || (bytes > mtu_of(*port) && !may_be_large(a, bytes))) return too_long(bytes);
  if (const Outcome own = a.peers.check_port(a.own.id.port); !own.is_done()) return own;
  if (a.config.type == QpType::Gsi && own_pkey(a) == 0) {
    return Outcome::fail(WcStatus::LocQpOpErr, Cause::PkeyMismatch, a.wqe.pkey_index);
  }
  if (a.wqe.remote_qpn == kMulticastQpn) {
    describe_route_of(a, *port, bytes, header);
    send_to_group(a, *port, pieces);
    return Outcome::done(bytes);
  }
  Outcome sent = send_to_one(a, *port, pieces, header);
  // Sent, as far as the sender can detect, even if it was dropped.
  if (sent.is_done() || sent.kind == Outcome::Kind::Dropped) sent.byte_len = bytes;
  return sent;
}

}  // namespace ib::hca
