// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a connection: DREQ, DREP, and destroy() in every state [IBA1 12.9.7.1.3].
#include "cm/messages/dreq.h"
#include "cm/procedures/disconnect_internal.h"

namespace ib::cm {

void Disconnection::send_dreq(Connection& connection, ByteSpan private_data, bool peer_lost_it,
                              Instant now) {
  Dreq dreq;
  dreq.ids = ids_of(connection, outbox_.next_transaction());
  dreq.remote_qpn = connection.info.remote_qpn;
  dreq.private_data = Bytes<kDreqPrivateBytes>(private_data);
  Resend sent = states_.send_first(connection, encode(dreq));
  const Instant deadline = now + sent.interval;
  states_.enter(connection, state::DreqSent{std::move(sent), peer_lost_it}, deadline);
}

Status Disconnection::disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (private_data.size() > kDreqPrivateBytes) return Status::InvalidParameter;
  if (connection->in<state::Established>() == nullptr) return Status::InvalidState;
  send_dreq(*connection, private_data, false, now);
  return Status::Ok;
}

Status Disconnection::confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (private_data.size() > kDrepPrivateBytes) return Status::InvalidParameter;
  const auto* received = connection->in<state::DreqReceived>();
  if (received == nullptr) return Status::InvalidState;
  const mad::Mad drep = encode(
      Drep{ids_of(*connection, received->transaction_id), Bytes<kDrepPrivateBytes>(private_data)});
  states_.send(*connection, drep);
  states_.enter_time_wait(*connection, keep(drep), now);
  return Status::Ok;
}

// A DREQ is always answered if it names no connection that would have to be kept: the other side
// has one that is over here.
void Disconnection::on_dreq(const mad::Mad& mad, const MadAddress& from, Instant now) {
  const Dreq dreq = decode_dreq(mad);
  Connection* const connection = states_.find(dreq.ids);
  const Ids swapped{dreq.ids.transaction_id, dreq.ids.remote, dreq.ids.local};
  if (connection == nullptr) return outbox_.send(from, encode(Drep{swapped, {}}));
  if (dreq.remote_qpn != connection->info.local_qpn) {
    ++outbox_.counters().wrong_comm_id;
    return;
  }
  if (connection->in<state::Established>() != nullptr ||
      connection->in<state::RepSent>() != nullptr) {
    DisconnectRequested event;
    event.private_data = PrivateData(dreq.private_data.view());
    states_.enter(*connection, state::DreqReceived{dreq.ids.transaction_id}, std::nullopt);
    states_.emit(*connection, event);
  } else if (connection->in<state::DreqSent>() != nullptr) {
    const mad::Mad drep = encode(Drep{swapped, {}});
    states_.send(*connection, drep);
    Disconnected event;
    event.by = Disconnected::By::Crossed;
    event.private_data = PrivateData(dreq.private_data.view());
    states_.emit(*connection, event);
    states_.enter_time_wait(*connection, keep(drep), now);
  } else if (auto* time_wait = connection->in<state::TimeWait>()) {
    ++outbox_.counters().duplicates;
    states_.send(*connection, time_wait->drep ? *time_wait->drep : encode(Drep{swapped, {}}));
  } else if (connection->in<state::Refused>() != nullptr ||
             connection->in<state::Closed>() != nullptr) {
    outbox_.send(from, encode(Drep{swapped, {}}));
  } else {
    ++outbox_.counters().duplicates;  // the consumer has not answered
  }
}

void Disconnection::on_drep(const mad::Mad& mad, Instant now) {
  const Drep drep = decode_drep(mad);
  Connection* const connection = states_.find(drep.ids);
  if (connection == nullptr) return;
  auto* sent = connection->in<state::DreqSent>();
  if (sent == nullptr) {
    const bool is_over = connection->in<state::TimeWait>() != nullptr;  // DREQs have crossed
    ++(is_over ? outbox_.counters().duplicates : outbox_.counters().wrong_state);
    return;
  }
  Disconnected event;
  event.by = sent->peer_lost_it ? Disconnected::By::Stale : Disconnected::By::Answer;
  event.private_data = PrivateData(drep.private_data.view());
  states_.emit(*connection, event);
  states_.enter_time_wait(*connection, nullptr, now);
}

void Disconnection::destroy(ConnectionId id, Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return;
  connection->is_owned = false;
  finish(*connection, now);
}

// Sends the other side the message that ends a connection which nobody has any more. Afterwards
// the connection is gone, or ends by a deadline or an answer.
void Disconnection::finish(Connection& connection, Instant now) {
  Rej rej;
  rej.reason = static_cast<std::uint16_t>(RejectReason::ConsumerReject);
  if (connection.in<state::ReqSent>() != nullptr) {
    states_.give_up(connection, Message::Req, Resend());
    states_.forget(connection);
  } else if (auto* req_received = connection.in<state::ReqReceived>()) {
    rej.ids = ids_of(connection, req_received->transaction_id);
    rej.message = static_cast<std::uint8_t>(Message::Req);
    refusals_.refuse(connection, rej, now);
  } else if (auto* rep_received = connection.in<state::RepReceived>()) {
    rej.ids = ids_of(connection, rep_received->transaction_id);
    rej.message = static_cast<std::uint8_t>(Message::Rep);
    refusals_.refuse(connection, rej, now);
  } else if (connection.in<state::RepSent>() != nullptr) {
    rej.ids = ids_of(connection, outbox_.next_transaction());
    rej.message = static_cast<std::uint8_t>(Message::Other);
    states_.send(connection, encode(rej));
    states_.enter_time_wait(connection, nullptr, now);
  } else if (connection.in<state::Established>() != nullptr) {
    send_dreq(connection, {}, false, now);
  } else if (auto* dreq_received = connection.in<state::DreqReceived>()) {
    const mad::Mad drep = encode(Drep{ids_of(connection, dreq_received->transaction_id), {}});
    states_.send(connection, drep);
    states_.enter_time_wait(connection, keep(drep), now);
  } else if (connection.in<state::Closed>() != nullptr) {
    states_.forget(connection);
  }
}

}  // namespace ib::cm
