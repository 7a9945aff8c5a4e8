// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution [IBA1 12.11]: SIDR_REQ of one side, SIDR_REP of the other.
#include "cm/engine_internal.h"

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

Result<SidrId> Engine::Impl::resolve_sidr(const SidrRequest& request, Instant now) {
  if (!fits(request.path) || request.response_timeout > kMaxExponent ||
      request.private_data.size() > kSidrReqPrivateBytes) {
    return Status::InvalidParameter;
  }
  if (sidr.size() >= config_.limits.sidr_exchanges) return Status::InsufficientResources;
  SidrExchange& exchange = sidr.create_request();
  exchange.transaction_id = next_transaction();
  exchange.service_id = request.service_id;
  exchange.peer = address_of(request.path);
  SidrReq req;
  req.transaction_id = exchange.transaction_id;
  req.request_id = exchange.request_id;
  req.pkey = request.path.pkey;
  req.service_id = request.service_id;
  req.private_data = Bytes<kSidrReqPrivateBytes>(request.private_data);
  const mad::Mad mad = encode(req);
  send(exchange.peer, mad);
  const Duration interval = wait_of(
      std::max(time_of(request.response_timeout) + 2 * time_of(request.path.packet_lifetime),
               config_.limits.shortest_response));
  exchange.state = sidr_state::Asked{Resend{keep(mad), interval, request.max_retries}};
  sidr.set_deadline(exchange, now + interval);
  return exchange.id;
}

void Engine::Impl::on_sidr_req(const mad::Mad& mad, const MadAddress& from) {
  const SidrReq req = decode_sidr_req(mad);
  if (SidrExchange* const known = sidr.find_answer(from, req.request_id)) {
    ++counters.duplicates;
    auto* answered = std::get_if<sidr_state::Answered>(&known->state);
    if (answered != nullptr && known->service_id == req.service_id) send(from, *answered->rep);
    return;
  }
  Listener* const listener =
      listeners.match(req.service_id, from.port, ServiceKind::Datagrams, req.private_data.view());
  if (listener == nullptr) {
    ++counters.no_listener;
    return send(from, refusal(req, SidrStatus::ServiceNotSupported));
  }
  const Peer peer = peer_of(from);
  if (!listener->waiting.has_seat(peer) || !quotas_.has_room(peer)) {
    ++counters.backlog_full;
    return send(from, refusal(req, SidrStatus::Rejected));
  }
  if (sidr.size() >= config_.limits.sidr_exchanges) {
    ++counters.no_room;
    return send(from, refusal(req, SidrStatus::Rejected));
  }
  SidrExchange& exchange = sidr.create_answer(from, req.request_id);
  exchange.transaction_id = req.transaction_id;
  exchange.service_id = req.service_id;
  exchange.state = sidr_state::Asking{listener->id};
  quotas_.add_pending(peer);
  listener->waiting.enter(peer);
  SidrRequested event;
  event.id = exchange.id;
  event.listener = listener->id;
  event.service_id = req.service_id;
  event.pkey = req.pkey;
  event.source = from;
  event.private_data = PrivateData(req.private_data.view());
  events_.push_back(event);
}

Status Engine::Impl::answer_sidr(SidrId id, const SidrReply& reply, Instant now) {
  SidrExchange* const exchange = sidr.find(static_cast<std::uint32_t>(id));
  if (exchange == nullptr || !exchange->is_owned) return Status::NotFound;
  if (reply.qpn > k24Bits || reply.vendor.vendor_id > k24Bits ||
      reply.info.size() > kAdditionalInfoBytes ||
      reply.private_data.size() > kSidrRepPrivateBytes) {
    return Status::InvalidParameter;
  }
  const auto* asking = std::get_if<sidr_state::Asking>(&exchange->state);
  if (asking == nullptr) return Status::InvalidState;
  const Peer peer = peer_of(exchange->peer);
  quotas_.remove_pending(peer);
  if (Listener* const listener = listeners.find(asking->listener)) listener->waiting.leave(peer);

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
  send(exchange->peer, mad);
  exchange->state = sidr_state::Answered{keep(mad)};
  sidr.set_deadline(*exchange, now + config_.limits.sidr_answers);
  sidr_answers_.push_back(static_cast<std::uint32_t>(id));
  if (sidr_answers_.size() <= config_.limits.kept_answers) return Status::Ok;
  SidrExchange* const oldest = sidr.find(sidr_answers_.front());
  sidr_answers_.pop_front();
  if (oldest != nullptr && std::holds_alternative<sidr_state::Answered>(oldest->state)) {
    end_sidr(*oldest);
  }
  return Status::Ok;
}

// Messages for it are those of nobody from now on.
void Engine::Impl::end_sidr(SidrExchange& exchange) {
  if (!exchange.is_owned) return sidr.erase(exchange);
  sidr.forget_remote(exchange);
  sidr.set_deadline(exchange, std::nullopt);
  exchange.state = sidr_state::Done();
}

void Engine::Impl::on_sidr_rep(const mad::Mad& mad, const MadAddress& from) {
  const auto rep = decode_sidr_rep(mad);
  if (!rep) {
    ++counters.malformed;
    return;
  }
  SidrExchange* const exchange = sidr.find_request(rep->request_id);
  if (exchange == nullptr || exchange->transaction_id != rep->transaction_id) {
    ++counters.wrong_comm_id;
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
  events_.push_back(event);
  end_sidr(*exchange);
}

void Engine::Impl::on_sidr_deadline(SidrExchange& exchange, Instant now) {
  auto* asked = std::get_if<sidr_state::Asked>(&exchange.state);
  if (asked == nullptr) return end_sidr(exchange);
  Resend& resend = asked->req;
  if (resend.retries_left > 0) {
    --resend.retries_left;
    ++resend.times_sent;
    ++counters.resent;
    send(exchange.peer, *resend.mad);
    return sidr.set_deadline(exchange, now + resend.interval);
  }
  events_.push_back(SidrTimedOut{exchange.id, resend.times_sent});
  end_sidr(exchange);
}

Waiting Engine::Impl::waiting(SidrId id) const {
  const SidrExchange* const exchange = sidr.find(static_cast<std::uint32_t>(id));
  if (exchange == nullptr || !exchange->is_owned) return {};
  const auto* asked = std::get_if<sidr_state::Asked>(&exchange->state);
  return asked != nullptr ? asked->req.waiting() : Waiting{};
}

void Engine::Impl::destroy(SidrId id, Instant now) {
  SidrExchange* const exchange = sidr.find(static_cast<std::uint32_t>(id));
  if (exchange == nullptr || !exchange->is_owned) return;
  if (std::holds_alternative<sidr_state::Asking>(exchange->state)) {
    SidrReply reply;
    reply.status = SidrStatus::Rejected;
    const Status status = answer_sidr(id, reply, now);
    IB_ASSERT(status == Status::Ok);
  }
  SidrExchange* const left = sidr.find(static_cast<std::uint32_t>(id));
  if (left == nullptr) return;
  left->is_owned = false;  // an answer is kept for duplicates
  if (!std::holds_alternative<sidr_state::Answered>(left->state)) sidr.erase(*left);
}

}  // namespace ib::cm
