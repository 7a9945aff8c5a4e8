// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/peer_cache.h"

#include "hca/layout/first_use.h"
#include "hca/layout/flow.h"

#include <algorithm>

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;

namespace {

// Why the flow of a queue pair has no plane.
Outcome blocked(const QpEntry& entry, std::uint32_t flow) {
  const Cause cause = flow::cause_of(flow);
  const std::uint16_t lid = entry.connection.address.dlid;
  const bool is_of_way = verbs::control::is_of_way(cause);
  return Outcome::wait(cause, is_of_way ? verbs::control::way_detail(entry.connection.way_end, lid)
                                        : std::uint64_t{lid});
}

// SMPs bring a port up, so they do not wait for that [IBA1 14.2.5.6].
bool carries(QpType type, verbs::PortState port_state) {
  const auto active = verbs::PortState::Active;
  const auto init = verbs::PortState::Init;
  return port_state == active || (type == QpType::Smi && port_state >= init && port_state < active);
}

}  // namespace

PeerCache::PeerCache(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own)
    : plane_(plane), own_(own), type_(config.type) {}

void PeerCache::forget() {
  peer_ = {};
  terms_ = {};
  fast_ = {};
}

Outcome PeerCache::check_port(std::uint32_t port) const {
  const PortEntry* entry = arena().port(port);
  const verbs::PortState state =
      entry == nullptr ? verbs::PortState::Nop : entry->state.load(std::memory_order_acquire);
  if (carries(type_, state)) return Outcome::done();
  return Outcome::wait(state == kPortAsleep ? Cause::HcaAsleep : Cause::PortDown);
}

Outcome PeerCache::resolve(Cause waits_for) {
  if (const Outcome own = check_port(own_.id.port); !own.is_done()) return own;
  const std::uint32_t dest = own_.connection.dest_qpn;
  QpEntry* entry = arena().qp(qp_index(dest));
  const auto is_peer = [&] { return entry->id.qpn.load(std::memory_order_acquire) == dest; };
  if (entry == nullptr || dest == 0 || !is_peer()) return absent();
  begin_use(own_);
  begin_use(*entry);
  if (!is_peer()) return absent();  // it may have gone without a look at that
  const Outcome way = check_port(entry->id.port);
  if (way.cause == Cause::HcaAsleep) return way;
  const QpState state = entry->id.state.load(std::memory_order_acquire);
  if (!verbs::receives(state)) {
    // Broken by this request itself, without a NAK [IBA1 9.9.6.3, class J].
    const auto why = entry->geometry.error_cause.load(std::memory_order_relaxed);
    if (why == Cause::RemoteInvalidate && waits_for == why) return Outcome::wait(why);
    return Outcome::wait(Cause::PeerNotReady, static_cast<std::uint32_t>(state));
  }
  const std::uint32_t flow = own_.connection.flow.load(std::memory_order_acquire);
  if (flow::plane_of(flow) != flow::kMemory) return blocked(own_, flow);
  if (entry->connection.dest_qpn != own_.id.qpn.load(std::memory_order_relaxed) ||
      entry->id.port != own_.connection.dest_port || entry->id.type != verbs::peer_type(type_)) {
    return unknown();
  }
  if (!way.is_done()) return way;
  if (type_ != QpType::Uc) {  // answers come by the way of the peer
    const std::uint32_t back = entry->connection.flow.load(std::memory_order_acquire);
    if (flow::plane_of(back) != flow::kMemory) return blocked(*entry, back);
  }
  // Same partition: equal base, at least one full member [IBA1 10.9.3].
  if (!verbs::share_partition(entry->id.pkey, own_.id.pkey)) {
    return Outcome::wait(Cause::PkeyMismatch,
                         std::uint64_t{own_.id.pkey} << 32 | std::uint64_t{entry->id.pkey});
  }
  (void)remember(*entry, dest);  // one without a receive queue can be written to
  return compare_terms();
}

// Nobody has the number.
Outcome PeerCache::absent() const {
  const auto gone = own_.geometry.error_cause.load(std::memory_order_relaxed);
  if (gone == Cause::PeerProcessGone) {
    return Outcome::wait(gone, own_.geometry.error_detail.load(std::memory_order_relaxed));
  }
  return unknown();
}

Outcome PeerCache::unknown() const {
  return Outcome::wait(Cause::PeerUnknown, own_.connection.address.dlid);
}

bool PeerCache::remember(QpEntry& entry, std::uint32_t qpn) {
  if (peer_.entry == &entry && peer_.qpn == qpn && peer_.generation == entry.id.generation) {
    return true;
  }
  forget();
  peer_.entry = &entry;
  peer_.qpn = qpn;
  peer_.generation = entry.id.generation;
  peer_.cq = CqProducer(arena(), entry.id.recv_cq);
  const auto& geometry = entry.geometry;
  return geometry.rq_ring == 0 ||
         peer_.receives.set(arena(), geometry.rq_ring, geometry.rq_slots, geometry.rq_stride);
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
Outcome PeerCache::compare_terms() {
  const auto both = epochs();
  if (!both) return unknown();
  const std::uint64_t now = both->now();
  const auto& mine = own_.connection;
  const auto& theirs = peer_.entry->connection;
  if (terms_.as_of != now) {
    const verbs::Mtu mtu = mine.mtu;
    const verbs::Mtu other = theirs.mtu;
    terms_.in_step = type_ == QpType::Uc || mine.sq_psn == theirs.rq_psn;
    terms_.longest = mtu == other ? kMaxMessage : verbs::mtu_bytes(std::min(mtu, other));
    terms_.on_way = carried_by_links(mtu);
    terms_.as_of = now;
  }
  if (terms_.in_step) return Outcome::done();
  return Outcome::wait(Cause::PsnMismatch,
                       std::uint64_t{mine.sq_psn} << 32 | std::uint64_t{theirs.rq_psn});
}

// Bytes of the longest message of which all packets pass the links, there and, as answers, back.
std::uint32_t PeerCache::carried_by_links(verbs::Mtu path) const {
  const std::uint32_t flow = own_.connection.flow.load(std::memory_order_acquire);
  const std::uint32_t back = peer_.entry->connection.flow.load(std::memory_order_acquire);
  verbs::Mtu link = flow::mtu_of(flow);
  if (type_ != QpType::Uc) link = std::min(link, flow::mtu_of(back));
  return link < path ? verbs::mtu_bytes(link) : kMaxMessage;
}

Outcome PeerCache::check_way(std::uint64_t bytes) const {
  if (bytes <= terms_.on_way) return Outcome::done();
  return Outcome::wait(Cause::WayMtu,
                       std::uint64_t{verbs::mtu_bytes(own_.connection.mtu)} << 32 | terms_.on_way);
}

std::uint64_t PeerCache::path_mtus() const {
  return std::uint64_t{verbs::mtu_bytes(own_.connection.mtu)} << 32 |
         std::uint64_t{verbs::mtu_bytes(peer_.entry->connection.mtu)};
}

std::optional<EpochPair> PeerCache::epochs() const {
  const ProcessSlot* own = arena().slot(plane_.slot());
  const ProcessSlot* other = arena().slot(peer_.entry->id.owner_slot);
  if (own == nullptr || other == nullptr) return std::nullopt;
  return EpochPair(*own, *other);
}

// The first request to a peer is not for the fast path: it finds the peer.
bool PeerCache::look() {
  fast_ = {};
  const QpEntry* known = peer_.entry;
  const std::uint32_t generation = peer_.generation;
  if (known == nullptr) return false;
  const auto both = epochs();
  if (!both) return false;
  const std::uint64_t before = both->now();  // a change after this is found by the next stands()
  if (!resolve(Cause::None).is_done() || peer_.entry != known || peer_.generation != generation ||
      terms_.longest != kMaxMessage || terms_.on_way != kMaxMessage) {
    return false;
  }
  fast_.epochs = *both;
  fast_.as_of = before;
  look_at_receives();
  Arrival arrival;
  arrival.source_qpn = own_.id.qpn.load(std::memory_order_relaxed);
  arrival.source_lid = own_.id.lid;
  Cqe receive;
  describe_receive(arrival, peer_.qpn, WcOpcode::Recv, 0, receive);
  if (fast_.shared_queue != nullptr) receive.srq = peer_.srq;
  fast_.receive = CompletionHead(receive);
  return true;
}

// An SRQ of another PD than the queue pair's is left to the slow path: what is cached of a key is
// for the queue pair's.
void PeerCache::look_at_receives() {
  if (!peer_.cq.valid() || peer_.cq.has_timestamps()) return;
  const auto& peer = peer_.entry->id;
  if (peer.srq == kNone) {
    fast_.takes_sends = peer_.receives.valid();
    return;
  }
  SrqEntry* queue = arena().srq(peer.srq);
  if (queue == nullptr) return;
  const std::uint32_t generation = queue->id.generation.load(std::memory_order_acquire);
  if (generation == 0 || queue->id.pd != peer.pd || queue->id.owner_slot != peer.owner_slot) return;
  if (peer_.use_srq(arena(), *queue, peer.srq, generation)) fast_.shared_queue = queue;
}

bool PeerCache::refresh_key(std::uint32_t key, std::uint64_t address, std::uint32_t length,
                            std::uint32_t access) {
  if (map_remote(key, address, length, access) != nullptr) return false;
  const auto& peer = peer_.entry->id;
  const Responder responder{peer.owner_slot, peer.pd, peer_.qpn};
  std::byte* found = plane_.remote_keys().map(responder, key, address, length, access);
  if (found == nullptr) {
    if (fast_.far.grants(key, address, length, access)) return false;
    fast_.far = plane_.remote_keys().cache_far(responder, key, address, length, access);
    return fast_.far.key != 0;
  }
  fast_.key = plane_.remote_keys().cache(key);
  if (map_remote(key, address, length, access) == nullptr) {
    fast_.key = RemoteKeys::cache_once(key, address, length, access, found);
    fast_.knows_once = true;
  }
  return true;
}

// A small message that is sent is better put into its completion (ResponderSide::place).
bool PeerCache::copy_far(std::uint32_t access, std::uint32_t key, std::uint64_t address,
                         std::byte* local, std::uint32_t bytes) {
  if (!fast_.far.grants(key, address, bytes, access)) return false;
  if (access == verbs::access::kLocalWrite && bytes <= kInlineScatter) return false;
  return plane_.far_memory().copy(
      fast_.far, address, local, bytes,
      access == verbs::access::kRemoteRead ? BounceOp::Read : BounceOp::Write);
}

void PeerCache::forget_once() {
  if (!fast_.knows_once) return;
  fast_.key = {};
  fast_.knows_once = false;
}

}  // namespace ib::hca
