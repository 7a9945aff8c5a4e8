// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Dispatching of MADs and deadlines to the parts of the engine.
#include "cm/engine.h"

#include "base/assert.h"
#include "cm/engine_internal.h"
#include "cm/messages/sidr.h"
#include "cm/timeouts.h"
#include "mad/class_port_info.h"

#include <algorithm>
#include <cstring>
#include <variant>

namespace ib::cm {
namespace {

// Returns whether the consumer still has the object of the event.
struct IsWanted {
  const ConnectionStates& states;
  const SidrExchanges& sidr;

  bool has(ConnectionId id) const { return states.owned(id) != nullptr; }
  bool has(SidrId id) const { return sidr.owned(id) != nullptr; }
  template <class E>
  bool operator()(const E& event) const {
    return has(event.id);
  }
};

void on_deadline(ConnectionStates& states, Connection& connection, Instant now) {
  if (auto* req_sent = connection.in<state::ReqSent>()) {
    if (states.send_again(connection, req_sent->req, now)) return;
    states.give_up(connection, Message::Req, req_sent->req);
    states.close(connection);
  } else if (auto* rep_sent = connection.in<state::RepSent>()) {
    if (states.send_again(connection, rep_sent->rep, now)) return;
    states.give_up(connection, Message::Rep, rep_sent->rep);
    states.enter_time_wait(connection, nullptr, now);
  } else if (auto* dreq_sent = connection.in<state::DreqSent>()) {
    if (states.send_again(connection, dreq_sent->dreq, now)) return;
    Disconnected event;
    event.by = dreq_sent->peer_lost_it ? Disconnected::By::Stale : Disconnected::By::Timeout;
    states.emit(connection, event);
    states.enter_time_wait(connection, nullptr, now);
  } else if (auto* lap_sent = connection.lap_sent()) {
    if (states.send_again(connection, lap_sent->lap, now)) return;
    states.emit(connection, AlternatePathTimedOut());
    connection.in<state::Established>()->path_change.reset();
    states.table().set_deadline(connection, std::nullopt);
  } else if (connection.in<state::TimeWait>() != nullptr) {
    states.emit(connection, TimeWaitEnded());
    states.close(connection);
  } else {
    IB_ASSERT(connection.in<state::Refused>() != nullptr);
    states.close(connection);
  }
}

}  // namespace

Engine::Impl::Impl(const Config& engine_config)
    : config(engine_config),
      outbox(config.seed),
      admission(config.limits),
      states(config, outbox, admission),
      refusals(config, outbox, states),
      disconnection(outbox, states, refusals),
      active(config, outbox, states),
      passive(config, outbox, admission, ports, states, disconnection),
      migration(config, outbox, ports, states),
      sidr(config, outbox, admission) {}

std::optional<Event> Engine::Impl::poll_event() {
  while (auto event = outbox.poll_event()) {
    if (std::visit(IsWanted{states, sidr}, *event)) return event;
  }
  return std::nullopt;
}

void Engine::Impl::on_time(Instant now) {
  ConnectionTable& connections = states.table();
  while (Connection* const connection = connections.due(now)) on_deadline(states, *connection, now);
  sidr.on_time(now);
}

std::optional<Instant> Engine::Impl::deadline() const {
  const auto first = states.table().deadline();
  const auto second = sidr.deadline();
  if (!first || !second) return first ? first : second;
  return std::min(*first, *second);
}

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
    info.capability_mask2_response_time = config.response_time & kMaxExponent;
    std::memcpy(answer.data() + sizeof header, &info, sizeof info);
  }
  header.method = mad::method::kGetResp;
  header.status = is_read ? mad::mad_status::kOk : mad::mad_status::kAttributeNotSupported;
  std::memcpy(answer.data(), &header, sizeof header);
  outbox.send(from, answer);
}

void Engine::Impl::receive(const mad::Mad& mad, const MadAddress& from, Instant now) {
  ++outbox.counters().received;
  const mad::MadHeader header = header_of(mad);
  if (header.base_version != mad::kBaseVersion || header.mgmt_class != kCmClass) {
    ++outbox.counters().malformed;
    return;
  }
  if (header.method == mad::method::kGet || header.method == mad::method::kSet) {
    return answer_get(mad, from);
  }
  const auto attribute = static_cast<Attribute>(std::uint16_t{header.attribute});
  if (header.method != kSend) {
    ++outbox.counters().malformed;
    return;
  }
  if (header.class_version != kCmClassVersion) return answer_version(attribute, mad, from);
  switch (attribute) {
    case Attribute::Req: return passive.on_req(mad, from, now);
    case Attribute::Mra: return refusals.on_mra(mad, now);
    case Attribute::Rej: return refusals.on_rej(mad, from, now);
    case Attribute::Rep: return active.on_rep(mad, from);
    case Attribute::Rtu: return passive.on_rtu(mad, from);
    case Attribute::Dreq: return disconnection.on_dreq(mad, from, now);
    case Attribute::Drep: return disconnection.on_drep(mad, now);
    case Attribute::SidrReq: return sidr.on_sidr_req(mad, from);
    case Attribute::SidrRep: return sidr.on_sidr_rep(mad, from);
    case Attribute::Lap: return migration.on_lap(mad, from);
    case Attribute::Apr: return migration.on_apr(mad);
    case Attribute::ClassPortInfo: break;
  }
  ++outbox.counters().malformed;
}

// Requests of another version of the protocol have an answer for that [IBA1 12.6.7.2, reason 31].
void Engine::Impl::answer_version(Attribute attribute, const mad::Mad& mad,
                                  const MadAddress& from) {
  ++outbox.counters().malformed;
  if (attribute == Attribute::Req) {
    const std::array<std::uint8_t, 1> highest{kCmClassVersion};
    outbox.send(from, rejection(decode_req(mad),
                                {RejectReason::InvalidClassVersion, AdditionalInfo(highest)}));
  } else if (attribute == Attribute::SidrReq) {
    const SidrReq req = decode_sidr_req(mad);
    SidrRep rep;
    rep.transaction_id = req.transaction_id;
    rep.request_id = req.request_id;
    rep.service_id = req.service_id;
    rep.status = static_cast<std::uint8_t>(SidrStatus::UnsupportedVersion);
    outbox.send(from, encode(rep));
  }
}

}  // namespace ib::cm
