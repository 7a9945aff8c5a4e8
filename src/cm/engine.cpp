// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Common to the phases of a connection: dispatching of MADs, output, states, deadlines.
#include "cm/engine.h"

#include "cm/engine_internal.h"
#include "mad/class_port_info.h"

#include <variant>

namespace ib::cm {

Engine::Impl::Impl(const Config& config)
    : listeners(config.limits.listeners, config.limits.backlog),
      connections(config.seed),
      sidr(config.seed ^ 0x5bd1'e995'5bd1'e995u),
      config_(config),
      quotas_(config_.limits),
      transactions_(config.seed << 32 | 1) {}

// --- output

void Engine::Impl::send(const MadAddress& to, const mad::Mad& mad) {
  ++counters.sent;
  mads_.push_back({to, mad});
}

Connection* Engine::Impl::owned(ConnectionId id) const {
  Connection* const connection = connections.find(static_cast<std::uint32_t>(id));
  return connection != nullptr && connection->is_owned ? connection : nullptr;
}

Connection* Engine::Impl::find(const Ids& ids) {
  Connection* const connection = connections.find(ids.remote);
  if (connection != nullptr && connection->info.remote_comm_id == ids.local) return connection;
  ++counters.wrong_comm_id;
  return nullptr;
}

Ids Engine::Impl::ids_of(const Connection& connection, std::uint64_t transaction_id) const {
  return {transaction_id, connection.info.local_comm_id, connection.info.remote_comm_id};
}

std::optional<OutgoingMad> Engine::Impl::poll_mad() {
  if (mads_.empty()) return std::nullopt;
  OutgoingMad mad = mads_.front();
  mads_.pop_front();
  return mad;
}

namespace {

// Returns whether the consumer still has the object of the event.
struct IsWanted {
  const ConnectionTable& connections;
  const SidrTable& sidr;

  bool has(ConnectionId id) const {
    const Connection* const connection = connections.find(static_cast<std::uint32_t>(id));
    return connection != nullptr && connection->is_owned;
  }
  bool has(SidrId id) const {
    const SidrExchange* const exchange = sidr.find(static_cast<std::uint32_t>(id));
    return exchange != nullptr && exchange->is_owned;
  }
  template <class E>
  bool operator()(const E& event) const {
    return has(event.id);
  }
};

}  // namespace

std::optional<Event> Engine::Impl::poll_event() {
  while (!events_.empty()) {
    const Event event = events_.front();
    events_.pop_front();
    if (std::visit(IsWanted{connections, sidr}, event)) return event;
  }
  return std::nullopt;
}

// --- states

void Engine::Impl::enter(Connection& connection, StateData state, std::optional<Instant> deadline) {
  connection.state = std::move(state);
  connections.set_deadline(connection, deadline);
}

// The consumer has dealt with the request. An end by the other side does not end its place in the
// backlog.
void Engine::Impl::stop_pending(Connection& connection) {
  if (!connection.is_pending) return;
  connection.is_pending = false;
  quotas_.remove_pending(*connection.counted_peer);
  if (Listener* const listener =
          connection.listener ? listeners.find(*connection.listener) : nullptr) {
    listener->waiting.leave(*connection.counted_peer);
  }
}

void Engine::Impl::forget(Connection& connection) {
  stop_pending(connection);
  if (connection.counted_peer) quotas_.remove_connection(*connection.counted_peer);
  connections.erase(connection);
}

void Engine::Impl::close(Connection& connection) {
  if (!connection.is_owned) return forget(connection);
  connections.forget_qpns(connection);
  connections.forget_remote(connection);
  connections.forget_peer(connection);
  enter(connection, state::Closed(), std::nullopt);
}

// 2 * packet lifetime + ACK delay [IBA1 12.9.8.4]; a REQ's ACK timeout is that sum.
void Engine::Impl::enter_time_wait(Connection& connection, KeptMad drep, Instant now) {
  const ConnectionInfo& info = connection.info;
  const Duration time = info.role == Role::Passive ? time_of(info.primary.ack_timeout)
                                                   : 2 * time_of(info.primary.packet_lifetime) +
                                                         time_of(info.target_ack_delay);
  connections.forget_peer(connection);
  enter(connection, state::TimeWait{std::move(drep)}, now + wait_of(time));
}

Duration Engine::Impl::wait_of(Duration wanted) const {
  return std::min(wanted, config_.limits.longest_wait);
}

Duration Engine::Impl::response_time(const Connection& connection) const {
  const ConnectionInfo& info = connection.info;
  const Duration time = info.role == Role::Active ? time_of(info.remote_cm_response_timeout) +
                                                        2 * time_of(info.primary.packet_lifetime)
                                                  : time_of(info.local_cm_response_timeout);
  return wait_of(std::max(time, config_.limits.shortest_response));
}

Duration Engine::Impl::peer_response_time(const Connection& connection) const {
  const ConnectionInfo& info = connection.info;
  const Duration time = info.role == Role::Passive ? time_of(info.remote_cm_response_timeout) +
                                                         2 * time_of(info.primary.packet_lifetime)
                                                   : time_of(info.local_cm_response_timeout);
  return wait_of(std::max(time, config_.limits.shortest_response));
}

Resend Engine::Impl::send_first(const Connection& connection, const mad::Mad& mad) {
  send(connection, mad);
  return {keep(mad), response_time(connection), connection.info.max_cm_retries};
}

// --- deadlines

bool Engine::Impl::send_again(Connection& connection, Resend& resend, Instant now) {
  if (resend.retries_left == 0) return false;
  --resend.retries_left;
  ++resend.times_sent;
  resend.mra_received = false;
  ++counters.resent;
  send(connection, *resend.mad);
  connections.set_deadline(connection, now + resend.interval);
  return true;
}

// No answer to REQ or REP. The other side finds its connection by the CA GUID and this side's
// communication ID even if it never sent its own [IBA1 12.6.7.2, reason 4].
void Engine::Impl::give_up(Connection& connection, Message message, const Resend& resend) {
  Rej rej;
  rej.ids = ids_of(connection, next_transaction());
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

void Engine::Impl::on_deadline(Connection& connection, Instant now) {
  if (auto* req_sent = connection.in<state::ReqSent>()) {
    if (send_again(connection, req_sent->req, now)) return;
    give_up(connection, Message::Req, req_sent->req);
    close(connection);
  } else if (auto* rep_sent = connection.in<state::RepSent>()) {
    if (send_again(connection, rep_sent->rep, now)) return;
    give_up(connection, Message::Rep, rep_sent->rep);
    enter_time_wait(connection, nullptr, now);
  } else if (auto* dreq_sent = connection.in<state::DreqSent>()) {
    if (send_again(connection, dreq_sent->dreq, now)) return;
    Disconnected event;
    event.by = dreq_sent->peer_lost_it ? Disconnected::By::Stale : Disconnected::By::Timeout;
    emit(connection, event);
    enter_time_wait(connection, nullptr, now);
  } else if (auto* lap_sent = connection.lap_sent()) {
    if (send_again(connection, lap_sent->lap, now)) return;
    emit(connection, AlternatePathTimedOut());
    connection.in<state::Established>()->path_change.reset();
    connections.set_deadline(connection, std::nullopt);
  } else if (connection.in<state::TimeWait>() != nullptr) {
    emit(connection, TimeWaitEnded());
    close(connection);
  } else {
    IB_ASSERT(connection.in<state::Refused>() != nullptr);
    close(connection);
  }
}

void Engine::Impl::on_time(Instant now) {
  while (Connection* const connection = connections.due(now)) on_deadline(*connection, now);
  while (SidrExchange* const exchange = sidr.due(now)) on_sidr_deadline(*exchange, now);
}

std::optional<Instant> Engine::Impl::deadline() const {
  const auto first = connections.deadline();
  const auto second = sidr.deadline();
  if (!first || !second) return first ? first : second;
  return std::min(*first, *second);
}

Result<ConnectionInfo> Engine::Impl::query(ConnectionId id) const {
  Connection* const connection = owned(id);
  if (connection == nullptr) return Status::NotFound;
  ConnectionInfo info = connection->info;
  info.state = connection->public_state();
  info.waiting = connection->waiting();
  const bool is_active = info.role == Role::Active;
  const auto timeout = [&](const Path& path) {
    return is_active ? ack_timeout(info.target_ack_delay, path.packet_lifetime) : path.ack_timeout;
  };
  info.ack_timeout = timeout(info.primary);
  if (info.alternate) info.alternate_ack_timeout = timeout(*info.alternate);
  info.awaits_path_answer =
      connection->lap_sent() != nullptr || connection->lap_received() != nullptr;
  return info;
}

// --- input

// ClassPortInfo is the only attribute of the class that can be read [IBA1 16.7.3].
void Engine::Impl::answer_get(const mad::Mad& mad, const MadAddress& from) {
  constexpr std::uint16_t kReliable = 1 << 9, kUnreliable = 1 << 12, kSidr = 1 << 13;
  mad::MadHeader header = header_of(mad);
  mad::Mad answer{};
  const bool is_read =
      header.method == mad::method::kGet && header.attribute == mad::kClassPortInfo;
  if (is_read) {
    mad::ClassPortInfo info;
    info.class_version = kCmClassVersion;
    info.capability_mask = kReliable | kUnreliable | kSidr;
    info.capability_mask2_response_time = config_.response_time & kMaxExponent;
    std::memcpy(answer.data() + sizeof header, &info, sizeof info);
  }
  header.method = mad::method::kGetResp;
  header.status = is_read ? mad::mad_status::kOk : mad::mad_status::kAttributeNotSupported;
  std::memcpy(answer.data(), &header, sizeof header);
  send(from, answer);
}

void Engine::Impl::receive(const mad::Mad& mad, const MadAddress& from, Instant now) {
  ++counters.received;
  const mad::MadHeader header = header_of(mad);
  if (header.base_version != mad::kBaseVersion || header.mgmt_class != kCmClass) {
    ++counters.malformed;
    return;
  }
  if (header.method == mad::method::kGet || header.method == mad::method::kSet) {
    return answer_get(mad, from);
  }
  const auto attribute = static_cast<Attribute>(std::uint16_t{header.attribute});
  if (header.method != kSend) {
    ++counters.malformed;
    return;
  }
  if (header.class_version != kCmClassVersion) return answer_version(attribute, mad, from);
  switch (attribute) {
    case Attribute::Req: return on_req(mad, from, now);
    case Attribute::Mra: return on_mra(mad, now);
    case Attribute::Rej: return on_rej(mad, from, now);
    case Attribute::Rep: return on_rep(mad, from);
    case Attribute::Rtu: return on_rtu(mad, from);
    case Attribute::Dreq: return on_dreq(mad, from, now);
    case Attribute::Drep: return on_drep(mad, now);
    case Attribute::SidrReq: return on_sidr_req(mad, from);
    case Attribute::SidrRep: return on_sidr_rep(mad, from);
    case Attribute::Lap: return on_lap(mad, from);
    case Attribute::Apr: return on_apr(mad);
    case Attribute::ClassPortInfo: break;
  }
  ++counters.malformed;
}

// Requests of another version of the protocol have an answer for that [IBA1 12.6.7.2, reason 31].
void Engine::Impl::answer_version(Attribute attribute, const mad::Mad& mad,
                                  const MadAddress& from) {
  ++counters.malformed;
  if (attribute == Attribute::Req) {
    const std::array<std::uint8_t, 1> highest{kCmClassVersion};
    reject_req(decode_req(mad), from, {RejectReason::InvalidClassVersion, AdditionalInfo(highest)});
  } else if (attribute == Attribute::SidrReq) {
    const SidrReq req = decode_sidr_req(mad);
    SidrRep rep;
    rep.transaction_id = req.transaction_id;
    rep.request_id = req.request_id;
    rep.service_id = req.service_id;
    rep.status = static_cast<std::uint8_t>(SidrStatus::UnsupportedVersion);
    send(from, encode(rep));
  }
}

}  // namespace ib::cm
