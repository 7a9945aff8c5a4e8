// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/connection_states_internal.h"
#include "cm/messages/rej.h"
#include "cm/reject_reason.h"
#include "cm/response_times_internal.h"

#include <array>
#include <bit>
#include <utility>

namespace ib::cm {

Ids ids_of(const Connection& connection, std::uint64_t transaction_id) {
  return {transaction_id, connection.info.local_comm_id, connection.info.remote_comm_id};
}

Connection* ConnectionStates::owned(ConnectionId id) const {
  Connection* const connection = connections_.find(static_cast<std::uint32_t>(id));
  return connection != nullptr && connection->is_owned ? connection : nullptr;
}

Connection* ConnectionStates::find(const Ids& ids) {
  Connection* const connection = connections_.find(ids.remote);
  if (connection != nullptr && connection->info.remote_comm_id == ids.local) return connection;
  ++outbox_.counters().wrong_comm_id;
  return nullptr;
}

void ConnectionStates::enter(Connection& connection, StateData state,
                             std::optional<Instant> deadline) {
  connection.state = std::move(state);
  connections_.set_deadline(connection, deadline);
}

void ConnectionStates::enter_time_wait(Connection& connection, KeptMad drep, Instant now) {
  const Duration time = time_wait(config_.limits, connection.info);
  connections_.forget_peer(connection);
  enter(connection, state::TimeWait{std::move(drep)}, now + time);
}

void ConnectionStates::start_pending(Connection& connection, Listener& listener, const Peer& peer) {
  connection.is_pending = true;
  connection.listener = listener.id;
  connection.counted_peer = peer;
  admission_.add_connection(peer);
  admission_.add_pending(listener, peer);
}

// The consumer has dealt with the request. An end by the other side does not end its place in the
// backlog.
void ConnectionStates::stop_pending(Connection& connection) {
  if (!connection.is_pending) return;
  connection.is_pending = false;
  admission_.remove_pending(connection.listener, *connection.counted_peer);
}

void ConnectionStates::forget(Connection& connection) {
  stop_pending(connection);
  if (connection.counted_peer) admission_.remove_connection(*connection.counted_peer);
  connections_.erase(connection);
}

void ConnectionStates::close(Connection& connection) {
  if (!connection.is_owned) return forget(connection);
  connections_.forget_qpns(connection);
  connections_.forget_remote(connection);
  connections_.forget_peer(connection);
  enter(connection, state::Closed(), std::nullopt);
}

Resend ConnectionStates::send_first(const Connection& connection, const mad::Mad& mad) {
  send(connection, mad);
  return {keep(mad), response_time(config_.limits, connection.info),
          connection.info.max_cm_retries};
}

bool ConnectionStates::send_again(Connection& connection, Resend& resend, Instant now) {
  if (resend.retries_left == 0) return false;
  --resend.retries_left;
  ++resend.times_sent;
  resend.mra_received = false;
  ++outbox_.counters().resent;
  send(connection, *resend.mad);
  connections_.set_deadline(connection, now + resend.interval);
  return true;
}

// No answer to REQ or REP. The other side finds its connection by the CA GUID and this side's
// communication ID even if it never sent its own [IBA1 12.6.7.2, reason 4].
void ConnectionStates::give_up(Connection& connection, Message message, const Resend& resend) {
  Rej rej;
  rej.ids = ids_of(connection, outbox_.next_transaction());
  rej.message = static_cast<std::uint8_t>(Message::Other);
  rej.reason = static_cast<std::uint16_t>(RejectReason::Timeout);
  const Be64 guid = config_.ca_guid;
  rej.info = AdditionalInfo(std::bit_cast<std::array<std::uint8_t, 8>>(guid));
  send(connection, encode(rej));
  TimedOut event;
  event.message = message;
  event.times_sent = resend.times_sent;
  event.was_delayed = resend.was_delayed;
  emit(connection, event);
}

}  // namespace ib::cm
