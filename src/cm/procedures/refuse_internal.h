// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Refusals: REJ and MRA, in both directions [IBA1 12.6.6, 12.6.7]; keeps what was rejected, to
// reject it again if it comes again.
#pragma once

#include "cm/connection_states_internal.h"
#include "cm/messages/rej.h"

#include <cstdint>
#include <deque>

namespace ib::cm {

class Refusals {
 public:
  Refusals(const Config& config, Outbox& outbox, ConnectionStates& states)
      : config_(config), outbox_(outbox), states_(states), connections_(states.table()) {}

  // As of the engine.
  Status reject(ConnectionId id, const Reject& reject, Instant now);
  Status delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data,
               bool for_copies);
  void on_rej(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_mra(const mad::Mad& mad, Instant now);

  // Rejects a REQ or REP that was received.
  void refuse(Connection& connection, const Rej& rej, Instant now);

 private:
  Connection* rejected_one(const Rej& rej);

  const Config& config_;
  Outbox& outbox_;
  ConnectionStates& states_;
  ConnectionTable& connections_;
  std::deque<std::uint32_t> refusals_;  // connections that were Refused, the oldest first
};

}  // namespace ib::cm
