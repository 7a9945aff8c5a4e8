// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PeerCache: the queue pair at the other end, found, checked and remembered: of a connected queue
// pair the one that it is connected to [IBA1 9.6.1], of datagrams the last one sent to.
//
// Thread rule: that of Requester.
#pragma once

#include "hca/layout/epoch.h"
#include "hca/memory/memory_plane.h"
#include "hca/queues/cq_producer.h"
#include "hca/queues/receive_source.h"
#include "hca/requester/arrival.h"
#include "hca/requester/outcome.h"
#include "hca/requester/send_wqe.h"

#include <cstdint>
#include <optional>

namespace ib::hca {

struct Peer {
  QpEntry* entry = nullptr;
  std::uint32_t qpn = 0;
  std::uint32_t generation = 0;
  ReceiveSource receives;  // its own queue, or the SRQ below
  std::uint32_t srq = kNone;
  std::uint32_t srq_generation = 0;
  CqProducer cq;

  // Takes the receives from that SRQ from now on. Returns false if its ring is impossible.
  bool use_srq(const Arena& arena, const SrqEntry& queue, std::uint32_t index,
               std::uint32_t its_generation) {
    if (srq == index && srq_generation == its_generation) return true;
    if (!receives.set(arena, queue.id.ring, queue.id.slots, queue.id.stride)) return false;
    srq = index;
    srq_generation = its_generation;
    return true;
  }
};

class PeerCache {
 public:
  PeerCache(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own);

  // Finds the connected queue pair and checks that it answers. Wait: it does not (yet).
  // `waits_for`: for what the request at hand has waited so far.
  Outcome resolve(Cause waits_for);
  // Caches a queue pair. Returns false if its receive queue is impossible.
  bool remember(QpEntry& entry, std::uint32_t qpn);
  void forget();
  // Done: messages of this queue pair's type may pass that port (an index of the port table).
  Outcome check_port(std::uint32_t port) const;

  Peer& peer() { return peer_; }
  const Peer& peer() const { return peer_; }
  // The terms of the connected pair, as both ends have set them [IBA1 9.7.4.1.6]:
  std::uint32_t longest() const { return terms_.longest; }  // more bytes would not pass
  // Done: the links on the way carry the packets of a message of so many bytes.
  Outcome check_way(std::uint64_t bytes) const;
  std::uint64_t path_mtus() const;  // own << 32 | the peer's, in bytes

  // --- the fast path (fast_path_post.h) ---

  // Whether resolve() would find the peer that it found last. A poster may change the state of the
  // peer at any time; the rest is refreshed when an epoch has risen.
  [[gnu::always_inline]] bool stands() const {
    if (fast_.epochs.now() != fast_.as_of) return false;
    // There is one as of that epoch.
    const verbs::QpState now = peer_.entry->id.state.load(std::memory_order_acquire);
    return now == verbs::QpState::Rts || now == verbs::QpState::Rtr;
  }
  // Refreshes the fields that stands() compares, if one has changed; `news` is then true. Returns
  // false if there is no fast path to this peer.
  bool refresh(bool& news) {
    if (fast_.epochs.now() == fast_.as_of) return true;
    news = true;
    return look();
  }
  // By the fast path: into its own queue; into the SRQ that it uses, if that is not nullptr.
  bool takes_sends() const { return fast_.takes_sends; }
  SrqEntry* shared_queue() const { return fast_.shared_queue; }
  const CompletionHead& receive() const { return fast_.receive; }  // what those have in common
  // Returns the place of the peer's memory by the cache of a key, or nullptr if it is not cached.
  [[gnu::always_inline]] std::byte* map_remote(std::uint32_t key, std::uint64_t address,
                                               std::uint64_t length, std::uint32_t access) const {
    return fast_.key.map(key, address, length, access);
  }
  // Refreshes the cache of the peer's memory that this key grants. Returns false if nothing is new.
  bool refresh_key(std::uint32_t key, std::uint64_t address, std::uint32_t length,
                   std::uint32_t access);
  // Copies between `local` and memory of the peer that is not mapped here. Returns false if the
  // slow path has to.
  bool copy_far(std::uint32_t access, std::uint32_t key, std::uint64_t address, std::byte* local,
                std::uint32_t bytes);
  void forget_once();

 private:
  // Whether the two ends agree, as both have set it.
  struct Terms {
    std::uint64_t as_of = kNoEpoch;
    bool in_step = true;                  // the PSN that one sends first, the other expects
    std::uint32_t longest = kMaxMessage;  // bytes; a message of more would not pass: path MTUs
    std::uint32_t on_way = kMaxMessage;   // the same for a link that has shorter packets than both
  };
  // The facts that the fast path has checked, and need not check again while the sum of the epochs
  // is `as_of`.
  struct Fast {
    EpochPair epochs;
    std::uint64_t as_of = kNoEpoch;  // this: nothing is cached
    bool takes_sends = false;
    SrqEntry* shared_queue = nullptr;
    bool knows_once = false;  // `key` is known for one request only
    CompletionHead receive;
    CachedRemote key;
    CachedFar far;
  };

  const Arena& arena() const { return plane_.arena(); }
  Outcome absent() const;
  Outcome unknown() const;
  Outcome compare_terms();
  std::uint32_t carried_by_links(verbs::Mtu path) const;
  // The epochs of this process and of the peer's owner. Returns none if the peer's slot is no slot.
  std::optional<EpochPair> epochs() const;
  bool look();
  void look_at_receives();

  MemoryPlane& plane_;
  QpEntry& own_;
  verbs::QpType type_;
  Peer peer_;
  Terms terms_;
  Fast fast_;
};

}  // namespace ib::hca
