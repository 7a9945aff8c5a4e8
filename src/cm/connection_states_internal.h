// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ConnectionStates: the connections of an engine and their states: entering and leaving them, the
// messages that are sent until they are answered, and what the consumer is told.
//
// Invariant: the state of a connection, and its place in the backlog, change here only.
#pragma once

#include "cm/admission_internal.h"
#include "cm/connection_table_internal.h"
#include "cm/messages/format.h"
#include "cm/outbox_internal.h"

#include <cstdint>
#include <optional>

namespace ib::cm {

Ids ids_of(const Connection& connection, std::uint64_t transaction_id);

class ConnectionStates {
 public:
  ConnectionStates(const Config& config, Outbox& outbox, Admission& admission)
      : config_(config), outbox_(outbox), admission_(admission), connections_(config.seed) {}

  ConnectionTable& table() { return connections_; }
  const ConnectionTable& table() const { return connections_; }
  // Null unless the consumer has it.
  Connection* owned(ConnectionId id) const;
  // Both ends' numbers are those of the message. Null and counted: no such connection.
  Connection* find(const Ids& ids);

  void send(const Connection& connection, const mad::Mad& mad) {
    outbox_.send(connection.info.peer, mad);
  }
  template <class E>
  void emit(const Connection& connection, E event) {
    if (!connection.is_owned) return;
    event.id = connection.id;
    outbox_.emit(event);
  }

  // The only place where a state changes.
  void enter(Connection& connection, StateData state, std::optional<Instant> deadline);
  void enter_time_wait(Connection& connection, KeptMad drep, Instant now);
  void close(Connection& connection);   // and forgets it if the consumer has
  void forget(Connection& connection);  // `connection` is gone
  // The request that made the connection waits for the consumer, or does no longer.
  void start_pending(Connection& connection, Listener& listener, const Peer& peer);
  void stop_pending(Connection& connection);

  Resend send_first(const Connection& connection, const mad::Mad& mad);
  // Returns false if no retry is left; sends again otherwise.
  bool send_again(Connection& connection, Resend& resend, Instant now);
  // Tells the other side, and the consumer, that `message` was not answered.
  void give_up(Connection& connection, Message message, const Resend& resend);

 private:
  const Config& config_;
  Outbox& outbox_;
  Admission& admission_;
  ConnectionTable connections_;
};

}  // namespace ib::cm
