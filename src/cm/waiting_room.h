// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WaitingRoom: the seats for requests of others that wait for an answer, shared by remote ports.
//
// A remote port gets another seat only while it has fewer than are free. One port alone gets half
// of them, and what is left is for the others: those that have none find one, however many requests
// somebody else sends.
#pragma once

#include "cm/types.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace ib::cm {

// The remote port that a request came from, to count by.
struct Peer {
  Gid gid{};
  std::uint16_t lid = 0;
  friend bool operator==(const Peer&, const Peer&) = default;
};
inline Peer peer_of(const MadAddress& address) {
  return address.is_global ? Peer{address.remote_gid, 0} : Peer{{}, address.remote_lid};
}
struct PeerHash {
  std::size_t operator()(const Peer& peer) const {
    std::uint64_t x = peer.lid;
    for (const std::uint8_t byte : peer.gid) x = (x ^ byte) * 0x100'0000'01b3u;
    return static_cast<std::size_t>(x ^ x >> 32);
  }
};

class CountByPeer {
 public:
  std::uint32_t of(const Peer& peer) const {
    const auto found = counts_.find(peer);
    return found == counts_.end() ? 0 : found->second;
  }
  void add(const Peer& peer) { ++counts_[peer]; }
  void remove(const Peer& peer) {
    const auto found = counts_.find(peer);
    if (--found->second == 0) counts_.erase(found);
  }

 private:
  std::unordered_map<Peer, std::uint32_t, PeerHash> counts_;
};

class WaitingRoom {
 public:
  explicit WaitingRoom(std::uint32_t seats = 0) : seats_(seats) {}
  // For a listener's backlog: that many requests of one port, and as many again for others. What
  // all ports send together is let in up to the backlog.
  static WaitingRoom of_backlog(std::uint32_t backlog) { return WaitingRoom(2 * backlog); }

  bool has_seat(const Peer& peer) const {
    return taken_ < seats_ && by_peer_.of(peer) < seats_ - taken_;
  }
  void enter(const Peer& peer) {
    ++taken_;
    by_peer_.add(peer);
  }
  void leave(const Peer& peer) {
    --taken_;
    by_peer_.remove(peer);
  }
  std::uint32_t size() const { return taken_; }
  std::uint32_t size_of(const Peer& peer) const { return by_peer_.of(peer); }

 private:
  std::uint32_t seats_;
  std::uint32_t taken_ = 0;
  CountByPeer by_peer_;
};

}  // namespace ib::cm
