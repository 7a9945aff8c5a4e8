// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PassiveSide: takes a connection: the REQ that comes, REP, the RTU that comes [IBA1 12.9.7.1,
// figure 125].
#pragma once

#include "cm/connection_states_internal.h"
#include "cm/messages/req.h"
#include "cm/ports_internal.h"
#include "cm/procedures/disconnect_internal.h"

#include <optional>

namespace ib::cm {

// The REJ of a REQ that made no connection.
mad::Mad rejection(const Req& req, const Fault& fault);

class PassiveSide {
 public:
  PassiveSide(const Config& config, Outbox& outbox, Admission& admission, const Ports& ports,
              ConnectionStates& states, Disconnection& disconnection)
      : config_(config),
        outbox_(outbox),
        admission_(admission),
        ports_(ports),
        states_(states),
        connections_(states.table()),
        disconnection_(disconnection) {}

  // As of the engine.
  Status accept(ConnectionId id, const Reply& reply, Instant now);
  Status data_has_arrived(ConnectionId id);
  void on_req(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_rtu(const mad::Mad& mad, const MadAddress& from);

 private:
  bool answered_as_duplicate(const Req& req, const MadAddress& from);
  bool is_stale(const Req& req, const MadAddress& from, Instant now);
  std::optional<Fault> fault_of(const Req& req, const MadAddress& from) const;
  void reject_req(const Req& req, const MadAddress& from, const Fault& fault);
  void peer_lost(Connection& connection, const MadAddress& from, Instant now);
  // Returns true if the REQ met one of this side's own REQs.
  bool met_peer(const Req& req, const MadAddress& from);
  void take_request(Connection& connection, const Req& req, const MadAddress& from);
  void announce(Connection& connection, const Req& req, const MadAddress& from,
                std::optional<ListenerId> listener);

  const Config& config_;
  Outbox& outbox_;
  Admission& admission_;
  const Ports& ports_;
  ConnectionStates& states_;
  ConnectionTable& connections_;
  Disconnection& disconnection_;
};

}  // namespace ib::cm
