// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The active side of a connection: REQ, the REP that comes, RTU [IBA1 12.9.7.1, figure 124].
#include "cm/messages/rej.h"
#include "cm/messages/req.h"
#include "cm/paths_internal.h"
#include "cm/procedures/connect_internal.h"
#include "cm/same_fields.h"
#include "cm/timeouts.h"

#include <algorithm>

namespace ib::cm {
namespace {

constexpr std::uint32_t k24Bits = 0xff'ffff;
constexpr std::uint8_t kExtendedTransport = 3, kXrcTransport = 1;

bool fits(const ConnectRequest& request) {
  const auto mtu = static_cast<std::uint32_t>(request.path_mtu);
  return request.qpn <= k24Bits && request.starting_psn <= k24Bits && request.retry_count <= 7 &&
         request.rnr_retry_count <= 7 && request.remote_cm_response_timeout <= kMaxExponent &&
         request.local_cm_response_timeout <= kMaxExponent && request.max_cm_retries <= 15 &&
         mtu >= 1 && mtu <= 5 && request.vendor.vendor_id <= k24Bits &&
         request.private_data.size() <= kReqPrivateBytes && fits(request.primary) &&
         (!request.alternate ||
          (fits(*request.alternate) && request.alternate->pkey == request.primary.pkey));
}

ConnectionInfo info_of(const ConnectRequest& request, std::uint8_t ack_delay) {
  ConnectionInfo info;
  info.role = Role::Active;
  info.service_id = request.service_id;
  info.transport = request.transport;
  info.local_qpn = request.qpn;
  info.receive_psn = request.starting_psn;
  info.responder_resources = request.responder_resources;
  info.initiator_depth = request.initiator_depth;
  info.retry_count = request.retry_count;
  copy_response_times(request, info);
  info.path_mtu = request.path_mtu;
  info.flow_control = request.flow_control;
  info.primary = request.primary;
  info.alternate = request.alternate;
  info.primary.ack_timeout = ack_timeout(ack_delay, info.primary.packet_lifetime);
  if (info.alternate) {
    info.alternate->ack_timeout = ack_timeout(ack_delay, info.alternate->packet_lifetime);
  }
  info.peer = address_of(request.primary);
  return info;
}

Req req_of(const ConnectRequest& request, const ConnectionInfo& info, std::uint64_t ca_guid) {
  Req req;
  copy_request_terms(request, req);
  copy_response_times(request, req);
  req.local_comm_id = info.local_comm_id;
  req.vendor = request.vendor;
  req.ca_guid = ca_guid;
  req.qkey = request.qkey;
  req.qpn = request.qpn;
  const bool is_xrc = request.transport == Transport::Xrc;
  req.transport = is_xrc ? kExtendedTransport : static_cast<std::uint8_t>(request.transport);
  req.extended_transport = is_xrc ? kXrcTransport : 0;
  req.pkey = request.primary.pkey;
  req.path_mtu = static_cast<std::uint8_t>(request.path_mtu);
  req.primary = info.primary;
  req.alternate = info.alternate;
  req.private_data = Bytes<kReqPrivateBytes>(request.private_data);
  return req;
}

ReplyReceived event_of(const Rep& rep, std::uint32_t qpn, const MadAddress& from) {
  ReplyReceived event;
  copy_terms(rep, event);
  event.remote_ca_guid = rep.ca_guid;
  event.remote_qpn = qpn;
  event.remote_qkey = rep.qkey;
  event.target_ack_delay = rep.target_ack_delay;
  event.failover = static_cast<Failover>(std::min<std::uint8_t>(rep.failover, 2));
  event.vendor = rep.vendor;
  event.source = from;
  event.private_data = PrivateData(rep.private_data.view());
  return event;
}

}  // namespace

Result<ConnectionId> ActiveSide::connect(const ConnectRequest& request, Instant now) {
  if (!fits(request)) return Status::InvalidParameter;
  const bool has_queue_pair = request.has_queue_pair;
  if (has_queue_pair && connections_.has_local_qpn(request.qpn)) return Status::DeviceBusy;
  if (connections_.size() >= config_.limits.connections) return Status::InsufficientResources;

  Connection& connection = connections_.create();
  const std::uint32_t comm_id = connection.info.local_comm_id;
  connection.info = info_of(request, config_.ack_delay);
  connection.info.local_comm_id = comm_id;
  connection.peer_to_peer = request.peer_to_peer;
  if (has_queue_pair) connections_.change_local_qpn(connection, request.qpn);
  if (request.peer_to_peer) connections_.index_peer(connection);

  Req req = req_of(request, connection.info, config_.ca_guid);
  req.transaction_id = outbox_.next_transaction();
  Resend sent = states_.send_first(connection, encode(req));
  const Instant deadline = now + sent.interval;
  states_.enter(connection, state::ReqSent{std::move(sent)}, deadline);
  return connection.id;
}

// A REP that nothing waits for is answered, so that its sender ends at once [IBA1 12.6.7.2, reason
// 6]; one that was doubled is answered as before.
void ActiveSide::on_rep(const mad::Mad& mad, const MadAddress& from) {
  const Rep rep = decode_rep(mad);
  Connection* const connection = connections_.find(rep.ids.remote);
  if (connection != nullptr && connection->in<state::ReqSent>() != nullptr) {
    return take_reply(*connection, rep, from);
  }
  if (connection != nullptr && connection->info.role == Role::Active &&
      connection->info.remote_comm_id == rep.ids.local) {
    if (repeat_answer(*connection)) return;
    if (connection->in<state::Closed>() == nullptr) {
      ++outbox_.counters().wrong_state;
      return;
    }
  }
  ++outbox_.counters().wrong_comm_id;
  reject_rep(rep, from, RejectReason::InvalidCommId);
}

void ActiveSide::reject_rep(const Rep& rep, const MadAddress& from, RejectReason reason) {
  Rej rej;
  rej.ids = {rep.ids.transaction_id, rep.ids.remote, rep.ids.local};
  rej.message = static_cast<std::uint8_t>(Message::Rep);
  rej.reason = static_cast<std::uint16_t>(reason);
  outbox_.send(from, encode(rej));
}

// Returns false if nothing was sent for the REP before.
bool ActiveSide::repeat_answer(Connection& connection) {
  const mad::Mad* answer = nullptr;
  if (auto* received = connection.in<state::RepReceived>()) {
    answer = received->mra.get();
  } else if (auto* established = connection.in<state::Established>()) {
    answer = established->rtu.get();
  } else if (auto* refused = connection.in<state::Refused>()) {
    answer = refused->rej.get();
  }
  if (answer == nullptr) return false;
  ++outbox_.counters().duplicates;
  states_.send(connection, *answer);
  return true;
}

void ActiveSide::take_reply(Connection& connection, const Rep& rep, const MadAddress& from) {
  const bool is_xrc = connection.info.transport == Transport::Xrc;
  const std::uint32_t qpn = is_xrc ? rep.eecn : rep.qpn;
  ConnectionInfo& info = connection.info;
  info.remote_ca_guid = rep.ca_guid;
  info.remote_comm_id = rep.ids.local;
  info.remote_qpn = qpn;
  if (!connections_.index_remote(connection)) {
    info.remote_ca_guid = info.remote_comm_id = info.remote_qpn = 0;
    ++outbox_.counters().stale;
    return reject_rep(rep, from, RejectReason::StaleConnection);
  }
  info.remote_qkey = rep.qkey;
  info.send_psn = rep.starting_psn;
  info.initiator_depth = rep.responder_resources;
  info.responder_resources = rep.initiator_depth;
  info.rnr_retry_count = rep.rnr_retry_count;
  info.target_ack_delay = rep.target_ack_delay;
  info.remote_srq = rep.srq;
  info.flow_control = rep.flow_control;
  info.remote_vendor = rep.vendor;
  if (rep.failover != static_cast<std::uint8_t>(Failover::Accepted)) info.alternate.reset();
  connections_.forget_peer(connection);
  states_.enter(connection, state::RepReceived{rep.ids.transaction_id, nullptr}, std::nullopt);
  states_.emit(connection, event_of(rep, qpn, from));
}

Status ActiveSide::establish(ConnectionId id, ByteSpan private_data) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (private_data.size() > kRtuPrivateBytes) return Status::InvalidParameter;
  const auto* received = connection->in<state::RepReceived>();
  if (received == nullptr) return Status::InvalidState;
  const mad::Mad rtu = encode(
      Rtu{ids_of(*connection, received->transaction_id), Bytes<kRtuPrivateBytes>(private_data)});
  states_.send(*connection, rtu);
  states_.enter(*connection, state::Established{keep(rtu), nullptr}, std::nullopt);
  return Status::Ok;
}

}  // namespace ib::cm
