// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The passive side of a connection: the REQ that comes, REP, the RTU that comes [IBA1 12.9.7.1,
// figure 125].
#include "base/assert.h"
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/paths_internal.h"
#include "cm/procedures/accept_internal.h"
#include "cm/procedures/peer_to_peer_internal.h"
#include "cm/same_fields.h"

#include <array>

namespace ib::cm {
namespace {

constexpr std::uint32_t k24Bits = 0xff'ffff;

// Returns nothing for a transport that this stack does not have.
std::optional<Transport> transport_of(const Req& req) {
  if (req.transport == 0) return Transport::Rc;
  if (req.transport == 1) return Transport::Uc;
  if (req.transport == 3 && req.extended_transport == 1) return Transport::Xrc;
  return std::nullopt;
}

bool fits(const Reply& reply) {
  return reply.qpn <= k24Bits && reply.starting_psn <= k24Bits && reply.rnr_retry_count <= 7 &&
         reply.vendor.vendor_id <= k24Bits && reply.private_data.size() <= kRepPrivateBytes;
}

}  // namespace

mad::Mad rejection(const Req& req, const Fault& fault) {
  Rej rej;
  rej.ids = {req.transaction_id, 0, req.local_comm_id};
  rej.message = static_cast<std::uint8_t>(Message::Req);
  rej.reason = static_cast<std::uint16_t>(fault.reason);
  rej.info = fault.info;
  return encode(rej);
}

void PassiveSide::reject_req(const Req& req, const MadAddress& from, const Fault& fault) {
  outbox_.send(from, rejection(req, fault));
}

// Order of the checks as in the specification's and Linux's: what the sender's names refer to comes
// before what it wants.
void PassiveSide::on_req(const mad::Mad& mad, const MadAddress& from, Instant now) {
  const Req req = decode_req(mad);
  if (answered_as_duplicate(req, from) || is_stale(req, from, now)) return;
  if (const auto fault = fault_of(req, from)) return reject_req(req, from, *fault);
  if (met_peer(req, from)) return;

  Listener* const listener = admission_.listeners().match(
      req.service_id, from.port, ServiceKind::Connections, req.private_data.view());
  if (listener == nullptr) {
    ++outbox_.counters().no_listener;
    return reject_req(req, from, {RejectReason::InvalidServiceId, {}});
  }
  const Peer peer = peer_of(from);
  if (!admission_.has_room(*listener, peer)) {
    ++outbox_.counters().backlog_full;
    return reject_req(req, from, {RejectReason::NoResources, {}});
  }
  if (connections_.size() >= config_.limits.connections) {
    ++outbox_.counters().no_room;
    return reject_req(req, from, {RejectReason::NoResources, {}});
  }
  Connection& connection = connections_.create();
  states_.start_pending(connection, *listener, peer);
  take_request(connection, req, from);
  announce(connection, req, from, listener->id);
}

bool PassiveSide::answered_as_duplicate(const Req& req, const MadAddress& from) {
  Connection* const connection = connections_.find_remote(req.ca_guid, req.local_comm_id);
  if (connection == nullptr) return false;
  ++outbox_.counters().duplicates;
  const mad::Mad* answer = nullptr;
  if (connection->info.remote_qpn != req.qpn || connection->info.role == Role::Active) {
    // A peer-to-peer REQ that the active side ignored comes again.
    if (!connection->peer_to_peer) {
      reject_req(req, from, {RejectReason::DuplicateLocalCommId, {}});
    }
  } else if (auto* received = connection->in<state::ReqReceived>()) {
    answer = received->mra.get();
  } else if (auto* rep_sent = connection->in<state::RepSent>()) {
    answer = rep_sent->rep.mad.get();
  } else if (auto* refused = connection->in<state::Refused>()) {
    answer = refused->rej.get();
  } else if (connection->in<state::TimeWait>() != nullptr) {
    reject_req(req, from, {RejectReason::StaleConnection, {}});
  }
  if (answer != nullptr) states_.send(*connection, *answer);
  return true;
}

// A REQ of a queue pair that is connected here: the other side does not have that connection any
// more [IBA1 12.9.8.3.1]. It has to come from where the connection's messages come from: others
// cannot end it.
bool PassiveSide::is_stale(const Req& req, const MadAddress& from, Instant now) {
  Connection* const connection = connections_.find_remote_qpn(req.ca_guid, req.qpn);
  if (req.qpn == 0 || connection == nullptr) return false;
  ++outbox_.counters().stale;
  reject_req(req, from, {RejectReason::StaleConnection, {}});
  if (peer_of(from) == peer_of(connection->info.peer)) peer_lost(*connection, from, now);
  return true;
}

void PassiveSide::peer_lost(Connection& connection, const MadAddress& from, Instant now) {
  if (connection.in<state::Established>() != nullptr) {
    return disconnection_.send_dreq(connection, {}, true, now);
  }
  Rejected event;
  event.reason = RejectReason::StaleConnection;
  event.was = connection.public_state();
  event.message = Message::Other;
  event.source = from;
  if (connection.in<state::ReqReceived>() != nullptr) {
    states_.emit(connection, event);
    states_.close(connection);
  } else if (connection.in<state::RepSent>() != nullptr ||
             connection.in<state::RepReceived>() != nullptr) {
    states_.emit(connection, event);
    states_.enter_time_wait(connection, nullptr, now);
  }
}

std::optional<Fault> PassiveSide::fault_of(const Req& req, const MadAddress& from) const {
  if (!transport_of(req)) return Fault{RejectReason::InvalidTransport, {}};
  const PortFacts* const port = ports_.find(from.port);
  const auto max_mtu =
      static_cast<std::uint8_t>(port != nullptr ? port->max_mtu : verbs::Mtu::B4096);
  if (req.path_mtu == 0 || req.path_mtu > max_mtu) {
    return Fault{RejectReason::InvalidMtu, AdditionalInfo(std::array{max_mtu})};
  }
  if (auto fault = ports_.address_fault(mirrored(req.primary), true, from.port)) return fault;
  if (!req.alternate) return std::nullopt;
  return ports_.address_fault(mirrored(*req.alternate), false, from.port);
}

bool PassiveSide::met_peer(const Req& req, const MadAddress& from) {
  Connection* const own = find_met(connections_, config_.ca_guid, req);
  if (own == nullptr) return false;
  if (stays_active(*own, config_.ca_guid, req)) {
    ++outbox_.counters().duplicates;
    return true;
  }
  connections_.forget_peer(*own);
  take_request(*own, req, from);
  announce(*own, req, from, std::nullopt);
  return true;
}

void PassiveSide::take_request(Connection& connection, const Req& req, const MadAddress& from) {
  ConnectionInfo& info = connection.info;
  info.role = Role::Passive;
  info.service_id = req.service_id;
  info.remote_comm_id = req.local_comm_id;
  info.remote_ca_guid = req.ca_guid;
  info.transport = *transport_of(req);
  info.remote_qpn = req.qpn;
  info.remote_qkey = req.qkey;
  info.send_psn = req.starting_psn;
  info.responder_resources = req.initiator_depth;
  info.initiator_depth = req.responder_resources;
  info.retry_count = req.retry_count;
  info.rnr_retry_count = req.rnr_retry_count;
  copy_response_times(req, info);
  info.path_mtu = static_cast<verbs::Mtu>(req.path_mtu);
  info.remote_srq = req.srq;
  info.flow_control = req.flow_control;
  info.primary = ports_.received_path(req.primary, from);
  info.alternate.reset();
  if (req.alternate) info.alternate = ports_.received_path(*req.alternate, from);
  info.remote_vendor = req.vendor;
  info.peer = from;
  const bool is_new = connections_.index_remote(connection);
  IB_ASSERT(is_new);  // neither a duplicate nor stale
  states_.enter(connection, state::ReqReceived{req.transaction_id, nullptr}, std::nullopt);
}

void PassiveSide::announce(Connection& connection, const Req& req, const MadAddress& from,
                           std::optional<ListenerId> listener) {
  const ConnectionInfo& info = connection.info;
  RequestReceived event;
  copy_request_terms(req, event);
  copy_response_times(req, event);
  event.listener = listener;
  event.remote_comm_id = req.local_comm_id;
  event.remote_ca_guid = req.ca_guid;
  event.remote_qpn = req.qpn;
  event.remote_qkey = req.qkey;
  event.transport = info.transport;
  event.path_mtu = info.path_mtu;
  event.peer_to_peer = connection.peer_to_peer;
  event.primary = info.primary;
  event.alternate = info.alternate;
  event.vendor = req.vendor;
  event.source = from;
  event.private_data = PrivateData(req.private_data.view());
  states_.emit(connection, event);
}

Status PassiveSide::accept(ConnectionId id, const Reply& reply, Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (!fits(reply)) return Status::InvalidParameter;
  const auto* received = connection->in<state::ReqReceived>();
  if (received == nullptr) return Status::InvalidState;
  ConnectionInfo& info = connection->info;
  if (!reply.has_queue_pair) {
    connections_.change_local_qpn(*connection, 0);
    info.local_qpn = reply.qpn;
  } else if (reply.qpn != info.local_qpn) {
    if (connections_.has_local_qpn(reply.qpn)) return Status::DeviceBusy;
    connections_.change_local_qpn(*connection, reply.qpn);
  }
  info.receive_psn = reply.starting_psn;
  info.responder_resources = reply.responder_resources;
  info.initiator_depth = reply.initiator_depth;
  if (reply.failover != Failover::Accepted) info.alternate.reset();

  Rep rep;
  copy_terms(reply, rep);
  rep.ids = ids_of(*connection, received->transaction_id);
  rep.qkey = reply.qkey;
  (info.transport == Transport::Xrc ? rep.eecn : rep.qpn) = reply.qpn;
  rep.vendor = reply.vendor;
  rep.target_ack_delay = config_.ack_delay;
  rep.failover = static_cast<std::uint8_t>(reply.failover);
  rep.ca_guid = config_.ca_guid;
  rep.private_data = Bytes<kRepPrivateBytes>(reply.private_data);
  states_.stop_pending(*connection);
  Resend sent = states_.send_first(*connection, encode(rep));
  const Instant deadline = now + sent.interval;
  states_.enter(*connection, state::RepSent{std::move(sent)}, deadline);
  return Status::Ok;
}

// An RTU for a connection that is over: this side gave up, and the other side has not seen why.
void PassiveSide::on_rtu(const mad::Mad& mad, const MadAddress& from) {
  const Rtu rtu = decode_rtu(mad);
  Connection* const connection = states_.find(rtu.ids);
  const bool is_over = connection == nullptr || connection->in<state::TimeWait>() != nullptr ||
                       connection->in<state::Closed>() != nullptr;
  if (is_over) {
    Rej rej;
    rej.ids = {rtu.ids.transaction_id, rtu.ids.remote, rtu.ids.local};
    rej.message = static_cast<std::uint8_t>(Message::Other);
    rej.reason = static_cast<std::uint16_t>(RejectReason::InvalidCommId);
    return outbox_.send(from, encode(rej));
  }
  if (connection->in<state::RepSent>() == nullptr) {
    const bool is_copy = connection->in<state::Established>() != nullptr;  // or data came first
    ++(is_copy ? outbox_.counters().duplicates : outbox_.counters().wrong_state);
    return;
  }
  states_.enter(*connection, state::Established(), std::nullopt);
  Established event;
  event.private_data = PrivateData(rtu.private_data.view());
  states_.emit(*connection, event);
}

Status PassiveSide::data_has_arrived(ConnectionId id) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (connection->in<state::Established>() != nullptr) return Status::Ok;
  if (connection->in<state::RepSent>() == nullptr) return Status::InvalidState;
  states_.enter(*connection, state::Established(), std::nullopt);
  Established event;
  event.by_data = true;
  states_.emit(*connection, event);
  return Status::Ok;
}

}  // namespace ib::cm
