// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution [IBA1 12.11]: SIDR_REQ of one side, SIDR_REP of the other.
#include "cm/messages/sidr.h"

#include "base/assert.h"
#include "cm/paths_internal.h"
#include "cm/procedures/sidr_internal.h"
#include "cm/response_times_internal.h"
#include "cm/timeouts.h"

#include <algorithm>
#include <variant>

namespace ib::cm {
namespace {

constexpr std::uint32_t k24Bits = 0xff'ffff;

mad::Mad refusal(const SidrReq& req, SidrStatus status) {
  SidrRep rep;
  rep.transaction_id = req.transaction_id;
  rep.request_id = req.request_id;
  rep.service_id = req.service_id;
  rep.status = static_cast<std::uint8_t>(status);
  return encode(rep);
}

}  // namespace

Result<SidrId> SidrExchanges::resolve(const SidrRequest& request, Instant now) {
  if (!fits(request.path) || request.response_timeout > kMaxExponent ||
      request.private_data.size() > kSidrReqPrivateBytes) {
    return Status::InvalidParameter;
  }
  if (exchanges_.size() >= config_.limits.sidr_exchanges) return Status::InsufficientResources;
  SidrExchange& exchange = exchanges_.create_request();
  exchange.transaction_id = outbox_.next_transaction();
  exchange.service_id = request.service_id;
  exchange.peer = address_of(request.path);
  SidrReq req;
  req.transaction_id = exchange.transaction_id;
  req.request_id = exchange.request_id;
  req.pkey = request.path.pkey;
  req.service_id = request.service_id;
  req.private_data = Bytes<kSidrReqPrivateBytes>(request.private_data);
  const mad::Mad mad = encode(req);
  outbox_.send(exchange.peer, mad);
  const Duration interval = wait_of(
      config_.limits,
      std::max(time_of(request.response_timeout) + 2 * time_of(request.path.packet_lifetime),
               config_.limits.shortest_response));
  exchange.state = sidr_state::Asked{Resend{keep(mad), interval, request.max_retries}};
  exchanges_.set_deadline(exchange, now + interval);
  return exchange.id;
}

void SidrExchanges::on_sidr_req(const mad::Mad& mad, const MadAddress& from) {
  const SidrReq req = decode_sidr_req(mad);
  if (SidrExchange* const known = exchanges_.find_answer(from, req.request_id)) {
    ++outbox_.counters().duplicates;
    auto* answered = std::get_if<sidr_state::Answered>(&known->state);
    if (answered != nullptr && known->service_id == req.service_id) {
      outbox_.send(from, *answered->rep);
    }
    return;
  }
  Listener* const listener = admission_.listeners().match(
      req.service_id, from.port, ServiceKind::Datagrams, req.private_data.view());
  if (listener == nullptr) {
    ++outbox_.counters().no_listener;
    return outbox_.send(from, refusal(req, SidrStatus::ServiceNotSupported));
  }
  const Peer peer = peer_of(from);
  if (!admission_.has_room(*listener, peer)) {
    ++outbox_.counters().backlog_full;
    return outbox_.send(from, refusal(req, SidrStatus::Rejected));
  }
  if (exchanges_.size() >= config_.limits.sidr_exchanges) {
    ++outbox_.counters().no_room;
    return outbox_.send(from, refusal(req, SidrStatus::Rejected));
  }
  SidrExchange& exchange = exchanges_.create_answer(from, req.request_id);
  exchange.transaction_id = req.transaction_id;
  exchange.service_id = req.service_id;
  exchange.state = sidr_state::Asking{listener->id};
  admission_.add_pending(*listener, peer);
  SidrRequested event;
  event.id = exchange.id;
  event.listener = listener->id;
  event.service_id = req.service_id;
  event.pkey = req.pkey;
  event.source = from;
  event.private_data = PrivateData(req.private_data.view());
  outbox_.emit(event);
}

SidrExchange* SidrExchanges::owned(SidrId id) const {
  SidrExchange* const exchange = exchanges_.find(static_cast<std::uint32_t>(id));
  return exchange != nullptr && exchange->is_owned ? exchange : nullptr;
}

Status SidrExchanges::answer(SidrId id, const SidrReply& reply, Instant now) {
  SidrExchange* const exchange = owned(id);
  if (exchange == nullptr) return Status::NotFound;
  if (reply.qpn > k24Bits || reply.vendor.vendor_id > k24Bits ||
      reply.info.size() > kAdditionalInfoBytes ||
      reply.private_data.size() > kSidrRepPrivateBytes) {
    return Status::InvalidParameter;
  }
  const auto* asking = std::get_if<sidr_state::Asking>(&exchange->state);
  if (asking == nullptr) return Status::InvalidState;
  admission_.remove_pending(asking->listener, peer_of(exchange->peer));

  SidrRep rep;
  rep.transaction_id = exchange->transaction_id;
  rep.request_id = exchange->request_id;
  rep.service_id = exchange->service_id;
  rep.status = static_cast<std::uint8_t>(reply.status);
  rep.qpn = reply.qpn;
  rep.qkey = reply.qkey;
  rep.vendor = reply.vendor;
  rep.info = AdditionalInfo(reply.info);
  rep.private_data = Bytes<kSidrRepPrivateBytes>(reply.private_data);
  const mad::Mad mad = encode(rep);
  outbox_.send(exchange->peer, mad);
  exchange->state = sidr_state::Answered{keep(mad)};
  exchanges_.set_deadline(*exchange, now + config_.limits.sidr_answers);
  answered_.push_back(static_cast<std::uint32_t>(id));
  if (answered_.size() <= config_.limits.kept_answers) return Status::Ok;
  SidrExchange* const oldest = exchanges_.find(answered_.front());
  answered_.pop_front();
  if (oldest != nullptr && std::holds_alternative<sidr_state::Answered>(oldest->state)) {
    end(*oldest);
  }
  return Status::Ok;
}

// Messages for it are those of nobody from now on.
void SidrExchanges::end(SidrExchange& exchange) {
  if (!exchange.is_owned) return exchanges_.erase(exchange);
  exchanges_.forget_remote(exchange);
  exchanges_.set_deadline(exchange, std::nullopt);
  exchange.state = sidr_state::Done();
}

void SidrExchanges::on_sidr_rep(const mad::Mad& mad, const MadAddress& from) {
  const auto rep = decode_sidr_rep(mad);
  if (!rep) {
    ++outbox_.counters().malformed;
    return;
  }
  SidrExchange* const exchange = exchanges_.find_request(rep->request_id);
  if (exchange == nullptr || exchange->transaction_id != rep->transaction_id) {
    ++outbox_.counters().wrong_comm_id;
    return;
  }
  SidrAnswered event;
  event.id = exchange->id;
  event.status = static_cast<SidrStatus>(rep->status);
  event.qpn = rep->qpn;
  event.qkey = rep->qkey;
  event.vendor = rep->vendor;
  event.info = rep->info;
  event.source = from;
  event.private_data = PrivateData(rep->private_data.view());
  outbox_.emit(event);
  end(*exchange);
}

void SidrExchanges::on_time(Instant now) {
  while (SidrExchange* const exchange = exchanges_.due(now)) on_deadline(*exchange, now);
}

void SidrExchanges::on_deadline(SidrExchange& exchange, Instant now) {
  auto* asked = std::get_if<sidr_state::Asked>(&exchange.state);
  if (asked == nullptr) return end(exchange);
  Resend& resend = asked->req;
  if (resend.retries_left > 0) {
    --resend.retries_left;
    ++resend.times_sent;
    ++outbox_.counters().resent;
    outbox_.send(exchange.peer, *resend.mad);
    return exchanges_.set_deadline(exchange, now + resend.interval);
  }
  outbox_.emit(SidrTimedOut{exchange.id, resend.times_sent});
  end(exchange);
}

Waiting SidrExchanges::waiting(SidrId id) const {
  const SidrExchange* const exchange = owned(id);
  if (exchange == nullptr) return {};
  const auto* asked = std::get_if<sidr_state::Asked>(&exchange->state);
  return asked != nullptr ? asked->req.waiting() : Waiting{};
}

void SidrExchanges::destroy(SidrId id, Instant now) {
  SidrExchange* const exchange = owned(id);
  if (exchange == nullptr) return;
  if (std::holds_alternative<sidr_state::Asking>(exchange->state)) {
    SidrReply reply;
    reply.status = SidrStatus::Rejected;
    const Status status = answer(id, reply, now);
    IB_ASSERT(status == Status::Ok);
  }
  SidrExchange* const left = exchanges_.find(static_cast<std::uint32_t>(id));
  if (left == nullptr) return;
  left->is_owned = false;  // an answer is kept for duplicates
  if (!std::holds_alternative<sidr_state::Answered>(left->state)) exchanges_.erase(*left);
}

}  // namespace ib::cm
