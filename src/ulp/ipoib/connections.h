// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of connected mode [RFC 4755]: an active one per neighbour carries what this interface
// sends, passive ones bring what neighbours send. Each is used in one direction, as Linux does, so
// that two ends that connect at the same time need not agree.
//
//   active: (none) --packet to a neighbour with the RC flag--> Connecting --REP--> Established
//              ^                                                  | refused, timeout   | lost, idle
//              +--------------- after a growing delay --- Refused <--------------------+
//
// While there is no established connection, datagrams carry what fits.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/counters.h"
#include "ulp/ipoib/deadline.h"
#include "ulp/ipoib/host.h"
#include "ulp/ipoib/peer_end.h"
#include "ulp/ipoib/random.h"
#include "ulp/ipoib/settings.h"
#include "ulp/ipoib/snapshot.h"
#include "ulp/ipoib/waiting_packets.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ib::ipoib {

struct UsableConnection {
  ConnectionId id{};
  std::uint32_t mtu = 0;  // IP MTU
};

class Connections {
 public:
  Connections(const Settings& settings, Host& host, Counters& counters, WaitingBudget& budget);

  // The established connection to a neighbour, if there is one.
  std::optional<UsableConnection> use(const HardwareAddress& peer, Instant now);
  // Begins one unless there is one, or it is too early after a failure. Returns true while it is
  // being established: a packet that is too large for a datagram may wait().
  bool start(const HardwareAddress& peer, const PathRecord& path, const AddressVector& vector,
             Instant now);
  void wait(const HardwareAddress& peer, WaitingPacket packet);
  // Packets that waited for a connection which is no longer being established.
  std::optional<WaitingPacket> take_waiting(const HardwareAddress& peer);

  // Both return the peer of an active connection, whose packets can be sent now.
  std::optional<HardwareAddress> on_connected(ConnectionId id,
                                              std::span<const std::byte> private_data, Instant now);
  std::optional<HardwareAddress> on_lost(ConnectionId id, Status reason, Instant now);
  Result<ConnectionId> on_request(const HardwareAddress& peer, Instant now);
  // The sender of a message of a passive connection, or of an active one.
  std::optional<HardwareAddress> on_message(ConnectionId id, Instant now);

  // The neighbour is gone or has another address: its connections are stale.
  void forget(const HardwareAddress& peer);
  // Ends all.
  void clear();

  void on_time(Instant now);
  const std::optional<Instant>& deadline() const { return next_.get(); }
  std::vector<ConnectionRow> rows() const;

 private:
  struct Connecting {
    ConnectionId id{};
    Instant until;
  };
  struct Established {
    ConnectionId id{};
    std::uint32_t mtu = 0;
  };
  struct Refused {
    Instant retry_at;
  };
  struct Active {
    Active(WaitingBudget& budget, std::size_t limit) : waiting(budget, limit) {}
    HardwareAddress peer;
    std::variant<Refused, Connecting, Established> state;
    std::uint32_t failures = 0;
    Trouble trouble = Trouble::None;
    Instant last_used;
    WaitingQueue waiting;
  };
  struct Passive {
    HardwareAddress peer;
    Instant last_used;
  };
  using ActiveTable = std::unordered_map<PeerEnd, Active, PeerEndHash>;

  static std::optional<ConnectionId> id_of(const Active& active);
  Active* find_active(ConnectionId id);
  Active* find_or_add(const HardwareAddress& peer, Instant now);
  bool make_active_room(Instant now);
  bool make_passive_room(Instant now);
  void fail(Active& active, Trouble trouble, Status status, Instant now);
  void walk_active(Instant now);
  void walk_passive(Instant now);
  void drop(Drop reason, std::size_t count);

  const Settings* settings_;
  Host* host_;
  Counters* counters_;
  WaitingBudget* budget_;
  Random random_;
  NextDeadline next_;
  std::uint32_t next_id_ = 1;
  ActiveTable active_;
  std::unordered_map<std::uint32_t, PeerEnd> active_ids_;  // Connecting and Established
  std::unordered_map<std::uint32_t, Passive> passive_;
};

}  // namespace ib::ipoib
