// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppQuota: how many messages are being received and how much memory they occupy, of each peer and
// in all, and how much more there may be.
#pragma once

#include "mad/peer.h"

#include <cstddef>
#include <map>

namespace ib::mad {

class RmppQuota {
 public:
  struct Limits {
    std::size_t max_bytes = 0;
    std::size_t max_bytes_per_peer = 0;
    std::size_t max_receptions = 0;
    std::size_t max_receptions_per_peer = 0;
  };

  explicit RmppQuota(const Limits& limits) : limits_(limits) {}

  std::size_t receptions() const { return receptions_; }
  std::size_t bytes() const { return bytes_; }
  // By how many bytes a reception of this peer may grow.
  std::size_t room_of(const Peer& peer) const;

  // Returns false if there may not be another reception of this peer.
  bool start(const Peer& peer);
  void change_bytes(const Peer& peer, std::size_t before, std::size_t after);
  // `bytes` are those that it occupies.
  void end(const Peer& peer, std::size_t bytes);

 private:
  struct Usage {
    std::size_t receptions = 0;
    std::size_t bytes = 0;
  };

  Limits limits_;
  std::map<Peer, Usage> usage_;
  std::size_t receptions_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ib::mad
