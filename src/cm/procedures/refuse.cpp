// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// REJ and MRA, in both directions [IBA1 12.6.6, 12.6.7].
#include "cm/procedures/refuse_internal.h"
#include "cm/response_times_internal.h"
#include "cm/timeouts.h"

#include <algorithm>
#include <cstring>

namespace ib::cm {
namespace {

std::optional<std::uint64_t> guid_of(const AdditionalInfo& info) {
  if (info.size() < sizeof(Be64)) return std::nullopt;
  Be64 guid;
  std::memcpy(&guid, info.view().data(), sizeof guid);
  return guid;
}

Message message_of(std::uint8_t number) {
  return number < 2 ? static_cast<Message>(number) : Message::Other;
}

}  // namespace

// The rejection is kept for as long as the other side may send its message again.
void Refusals::refuse(Connection& connection, const Rej& rej, Instant now) {
  const mad::Mad mad = encode(rej);
  states_.send(connection, mad);
  states_.stop_pending(connection);
  connections_.forget_qpns(connection);
  states_.enter(
      connection, state::Refused{keep(mad)},
      now + wait_of(config_.limits, 2 * peer_response_time(config_.limits, connection.info)));
  refusals_.push_back(connection.info.local_comm_id);
  if (refusals_.size() <= config_.limits.kept_answers) return;
  Connection* const oldest = connections_.find(refusals_.front());
  refusals_.pop_front();
  if (oldest != nullptr && oldest->in<state::Refused>() != nullptr) states_.close(*oldest);
}

Status Refusals::reject(ConnectionId id, const Reject& reject, Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (reject.info.size() > kAdditionalInfoBytes || reject.private_data.size() > kRejPrivateBytes) {
    return Status::InvalidParameter;
  }
  Rej rej;
  rej.reason = static_cast<std::uint16_t>(reject.reason);
  rej.info = AdditionalInfo(reject.info);
  rej.private_data = Bytes<kRejPrivateBytes>(reject.private_data);
  if (auto* req_received = connection->in<state::ReqReceived>()) {
    rej.ids = ids_of(*connection, req_received->transaction_id);
    rej.message = static_cast<std::uint8_t>(Message::Req);
    refuse(*connection, rej, now);
  } else if (auto* rep_received = connection->in<state::RepReceived>()) {
    rej.ids = ids_of(*connection, rep_received->transaction_id);
    rej.message = static_cast<std::uint8_t>(Message::Rep);
    refuse(*connection, rej, now);
  } else if (connection->in<state::RepSent>() != nullptr) {
    rej.ids = ids_of(*connection, outbox_.next_transaction());
    rej.message = static_cast<std::uint8_t>(Message::Other);
    states_.send(*connection, encode(rej));
    states_.enter_time_wait(*connection, nullptr, now);
  } else {
    return Status::InvalidState;
  }
  return Status::Ok;
}

// A side that gave up names its CA and its communication ID; it may have none of this side. The
// sender of a REQ has no communication ID of the other side, also if a REP was overtaken by its
// REJ.
Connection* Refusals::rejected_one(const Rej& rej) {
  const auto guid = guid_of(rej.info);
  if (rej.reason == static_cast<std::uint16_t>(RejectReason::Timeout) && guid) {
    Connection* const connection = connections_.find_remote(*guid, rej.ids.local);
    if (connection != nullptr &&
        (rej.ids.remote == 0 || rej.ids.remote == connection->info.local_comm_id)) {
      return connection;
    }
  }
  Connection* const connection = connections_.find(rej.ids.remote);
  if (connection != nullptr && connection->in<state::ReqSent>() != nullptr) return connection;
  return states_.find(rej.ids);
}

void Refusals::on_rej(const mad::Mad& mad, const MadAddress& from, Instant now) {
  const auto decoded = decode_rej(mad);
  if (!decoded) {
    ++outbox_.counters().malformed;
    return;
  }
  const Rej& rej = *decoded;
  Connection* const connection = rejected_one(rej);
  if (connection == nullptr) return;
  Rejected event;
  event.reason = static_cast<RejectReason>(rej.reason);
  event.message = message_of(rej.message);
  event.was = connection->public_state();
  event.info = rej.info;
  event.source = from;
  event.private_data = PrivateData(rej.private_data.view());

  if (auto* req_sent = connection->in<state::ReqSent>()) {
    // The other side of a peer-to-peer connection may come later.
    if (connection->peer_to_peer && event.reason == RejectReason::InvalidServiceId &&
        req_sent->req.retries_left > 0) {
      return;
    }
    states_.emit(*connection, event);
    // The other side has the queue pair in time-wait, so this side does, too.
    if (event.reason == RejectReason::StaleConnection) {
      return states_.enter_time_wait(*connection, nullptr, now);
    }
    states_.close(*connection);
  } else if (connection->in<state::ReqReceived>() != nullptr) {
    states_.emit(*connection, event);
    states_.close(*connection);
  } else if (auto* dreq_sent = connection->in<state::DreqSent>()) {
    Disconnected disconnected;
    if (dreq_sent->peer_lost_it) disconnected.by = Disconnected::By::Stale;
    states_.emit(*connection, disconnected);
    states_.enter_time_wait(*connection, nullptr, now);
  } else if (connection->in<state::RepSent>() != nullptr ||
             connection->in<state::RepReceived>() != nullptr ||
             connection->in<state::Established>() != nullptr) {
    states_.emit(*connection, event);
    states_.enter_time_wait(*connection, nullptr, now);
  } else {
    ++outbox_.counters().wrong_state;
  }
}

Status Refusals::delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data,
                       bool for_copies) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (service_timeout > kMaxExponent || private_data.size() > kMraPrivateBytes) {
    return Status::InvalidParameter;
  }
  Mra mra;
  mra.service_timeout = service_timeout;
  mra.private_data = Bytes<kMraPrivateBytes>(private_data);
  KeptMad* kept = nullptr;
  if (auto* req_received = connection->in<state::ReqReceived>()) {
    mra.message = 0;
    mra.ids = ids_of(*connection, req_received->transaction_id);
    kept = &req_received->mra;
  } else if (auto* rep_received = connection->in<state::RepReceived>()) {
    mra.message = 1;
    mra.ids = ids_of(*connection, rep_received->transaction_id);
    kept = &rep_received->mra;
  } else if (auto* lap_received = connection->lap_received()) {
    mra.message = 2;
    mra.ids = ids_of(*connection, lap_received->transactions.front());
    kept = &lap_received->mra;
  }
  if (kept == nullptr) return Status::InvalidState;
  *kept = keep(encode(mra));
  if (!for_copies) states_.send(*connection, **kept);
  return Status::Ok;
}

// An MRA is an answer to each sending of the message: the first one counts.
void Refusals::on_mra(const mad::Mad& mad, Instant now) {
  const Mra mra = decode_mra(mad);
  // The sender of a REQ has no communication ID of the other side.
  Connection* connection =
      mra.message == 0 ? connections_.find(mra.ids.remote) : states_.find(mra.ids);
  Resend* delayed = nullptr;
  if (connection == nullptr) {
    if (mra.message == 0) ++outbox_.counters().wrong_comm_id;
    return;
  }
  if (auto* req_sent = connection->in<state::ReqSent>(); req_sent != nullptr && mra.message == 0) {
    delayed = &req_sent->req;
  } else if (auto* rep_sent = connection->in<state::RepSent>();
             rep_sent != nullptr && mra.message == 1) {
    delayed = &rep_sent->rep;
  } else if (auto* lap_sent = connection->lap_sent(); lap_sent != nullptr && mra.message == 2) {
    delayed = &lap_sent->lap;
  }
  if (delayed == nullptr || delayed->mra_received) {
    ++outbox_.counters().wrong_state;
    return;
  }
  delayed->mra_received = delayed->was_delayed = true;
  const Duration wait =
      time_of(mra.service_timeout) + 2 * time_of(connection->info.primary.packet_lifetime);
  connections_.set_deadline(
      *connection, now + wait_of(config_.limits, std::max(wait, config_.limits.shortest_response)));
  Delayed event;
  event.message = message_of(mra.message);
  event.service_timeout = mra.service_timeout;
  event.private_data = PrivateData(mra.private_data.view());
  states_.emit(*connection, event);
}

}  // namespace ib::cm
