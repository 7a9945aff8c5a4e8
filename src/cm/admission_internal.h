// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Admission: the listeners, and whether a request for one of them may wait for the consumer's
// answer; it has a seat at the listener and counts for its peer and in all.
#pragma once

#include "cm/listeners_internal.h"
#include "cm/quotas_internal.h"

#include <optional>

namespace ib::cm {

class Admission {
 public:
  explicit Admission(const Limits& limits)
      : listeners_(limits.listeners, limits.backlog), quotas_(limits) {}

  Listeners& listeners() { return listeners_; }

  bool has_room(const Listener& listener, const Peer& peer) const {
    return listener.waiting.has_seat(peer) && quotas_.has_room(peer);
  }
  void add_pending(Listener& listener, const Peer& peer) {
    quotas_.add_pending(peer);
    listener.waiting.enter(peer);
  }
  // The listener may have ended.
  void remove_pending(std::optional<ListenerId> id, const Peer& peer) {
    quotas_.remove_pending(peer);
    if (Listener* const listener = id ? listeners_.find(*id) : nullptr) {
      listener->waiting.leave(peer);
    }
  }
  void add_connection(const Peer& peer) { quotas_.add_connection(peer); }
  void remove_connection(const Peer& peer) { quotas_.remove_connection(peer); }

 private:
  Listeners listeners_;
  Quotas quotas_;
};

}  // namespace ib::cm
