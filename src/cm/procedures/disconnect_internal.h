// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Disconnection: the end of a connection: DREQ, DREP, and destroy() in every state
// [IBA1 12.9.7.1.3].
#pragma once

#include "cm/connection_states_internal.h"
#include "cm/procedures/refuse_internal.h"

namespace ib::cm {

class Disconnection {
 public:
  Disconnection(Outbox& outbox, ConnectionStates& states, Refusals& refusals)
      : outbox_(outbox), states_(states), refusals_(refusals) {}

  // As of the engine.
  Status disconnect(ConnectionId id, ByteSpan private_data, Instant now);
  Status confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now);
  void destroy(ConnectionId id, Instant now);
  void on_dreq(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_drep(const mad::Mad& mad, Instant now);

  void send_dreq(Connection& connection, ByteSpan private_data, bool peer_lost_it, Instant now);

 private:
  void finish(Connection& connection, Instant now);

  Outbox& outbox_;
  ConnectionStates& states_;
  Refusals& refusals_;
};

}  // namespace ib::cm
