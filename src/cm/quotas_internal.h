// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Quotas: counts the requests of peers, in all and by remote port, so that one of them cannot
// take everything.
#pragma once

#include "cm/connection_internal.h"

#include <cstdint>
#include <unordered_map>

namespace ib::cm {

struct PeerHash {
  std::size_t operator()(const Peer& peer) const {
    std::uint64_t x = peer.lid;
    for (const std::uint8_t byte : peer.gid) x = (x ^ byte) * 0x100'0000'01b3u;
    return static_cast<std::size_t>(x ^ x >> 32);
  }
};

class Quotas {
 public:
  explicit Quotas(const Limits& limits) : limits_(limits) {}

  // Returns whether another request of this peer may wait for the consumer.
  bool has_room(const Peer& peer) const {
    const auto found = peers_.find(peer);
    return pending_ < limits_.pending &&
           (found == peers_.end() || (found->second.pending < limits_.pending_of_peer &&
                                      found->second.connections < limits_.connections_of_peer));
  }
  void add_pending(const Peer& peer) {
    ++pending_;
    ++peers_[peer].pending;
  }
  void remove_pending(const Peer& peer) {
    --pending_;
    --peers_[peer].pending;
    drop_if_empty(peer);
  }
  void add_connection(const Peer& peer) { ++peers_[peer].connections; }
  void remove_connection(const Peer& peer) {
    --peers_[peer].connections;
    drop_if_empty(peer);
  }
  std::size_t peer_count() const { return peers_.size(); }

 private:
  struct Count {
    std::uint32_t pending = 0;
    std::uint32_t connections = 0;
  };
  void drop_if_empty(const Peer& peer) {
    const auto found = peers_.find(peer);
    if (found->second.pending == 0 && found->second.connections == 0) peers_.erase(found);
  }

  const Limits& limits_;
  std::uint32_t pending_ = 0;
  std::unordered_map<Peer, Count, PeerHash> peers_;
};

}  // namespace ib::cm
