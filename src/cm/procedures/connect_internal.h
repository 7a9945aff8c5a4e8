// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ActiveSide: makes a connection by a REQ: the REP that comes, RTU [IBA1 12.9.7.1, figure 124].
#pragma once

#include "cm/connection_states_internal.h"
#include "cm/messages/rep.h"

namespace ib::cm {

class ActiveSide {
 public:
  ActiveSide(const Config& config, Outbox& outbox, ConnectionStates& states)
      : config_(config), outbox_(outbox), states_(states), connections_(states.table()) {}

  // As of the engine.
  Result<ConnectionId> connect(const ConnectRequest& request, Instant now);
  Status establish(ConnectionId id, ByteSpan private_data);
  void on_rep(const mad::Mad& mad, const MadAddress& from);

 private:
  void take_reply(Connection& connection, const Rep& rep, const MadAddress& from);
  void reject_rep(const Rep& rep, const MadAddress& from, RejectReason reason);
  bool repeat_answer(Connection& connection);

  const Config& config_;
  Outbox& outbox_;
  ConnectionStates& states_;
  ConnectionTable& connections_;
};

}  // namespace ib::cm
