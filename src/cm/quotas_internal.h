// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Quotas: counts the requests of peers, in all and by remote port, so that one of them cannot
// take everything.
#pragma once

#include "cm/connection_internal.h"
#include "cm/waiting_room.h"

namespace ib::cm {

class Quotas {
 public:
  explicit Quotas(const Limits& limits) : limits_(limits), pending_(limits.pending) {}

  // Returns whether another request of this peer may wait for the consumer.
  bool has_room(const Peer& peer) const {
    return pending_.has_seat(peer) && pending_.size_of(peer) < limits_.pending_of_peer &&
           connections_.of(peer) < limits_.connections_of_peer;
  }
  void add_pending(const Peer& peer) { pending_.enter(peer); }
  void remove_pending(const Peer& peer) { pending_.leave(peer); }
  void add_connection(const Peer& peer) { connections_.add(peer); }
  void remove_connection(const Peer& peer) { connections_.remove(peer); }

 private:
  const Limits& limits_;
  WaitingRoom pending_;  // of all listeners together
  CountByPeer connections_;
};

}  // namespace ib::cm
