// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/mgmt_class.h"
#include "services/gsi/messages_internal.h"
#include "services/gsi/transfers_internal.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services {

using mad::RmppStatus;
using Output = mad::Rmpp::Output;

namespace {

// Why a transfer failed, for an agent.
Status status_of(RmppStatus status, bool by_peer) {
  if (by_peer) return Status::Disconnected;
  if (status == RmppStatus::Resources) return Status::LimitExceeded;
  const bool is_late = status == RmppStatus::TooManyRetries || status == RmppStatus::TimeTooLong;
  return is_late ? Status::Timeout : Status::Malformed;
}

std::string text_of(RmppStatus status, bool by_peer) {
  return fmt::format("the transfer in several packets was ended by {}: {} ({})",
                     by_peer ? "the other side" : "this side", mad::rmpp_status_text(status),
                     static_cast<unsigned>(status));
}

}  // namespace

Status GsiTransfers::send_request(mad::TransactionId request, const GsiAddress& to,
                                  std::vector<std::byte> message) {
  return send({to, 0, request, true, {}}, std::move(message), true);
}

Status GsiTransfers::send_response(AgentId agent, const GsiAddress& to,
                                   std::vector<std::byte> message, OnGsiSent on_sent) {
  return send({to, agent, 0, true, std::move(on_sent)}, std::move(message), false);
}

Status GsiTransfers::send(Transfer transfer, std::vector<std::byte> message, bool is_answered) {
  const mad::Peer peer = peer_of(transfer.address.port, transfer.address.remote);
  IB_TRY(id, rmpp_.send(peer, std::move(message), is_answered, executor_.now()));
  if (transfer.request != 0) of_requests_[transfer.request].sending = id;
  transfers_[id] = std::move(transfer);
  run();
  return Status::Ok;
}

void GsiTransfers::on_packet(const GsiAddress& from, const mad::MadHeader& header,
                             const mad::Mad& mad, bool may_begin) {
  const mad::Peer peer = peer_of(from.port, from.remote);
  const mad::TransactionId tid = header.transaction_id;
  const bool is_answer = mad::is_response(header.method);
  const auto id = rmpp_.on_packet(peer, mad, may_begin, executor_.now());
  if (id != 0 && !transfers_.contains(id)) {
    transfers_[id] = {from, 0, is_answer ? tid : 0, false, {}};
    if (is_answer) {
      of_requests_[tid].receiving = id;
      handler_->on_answer_begins(tid);
    }
  }
  source_ = &from;
  run();
  source_ = nullptr;
}

void GsiTransfers::run() {
  if (runs_) return;
  runs_ = true;
  while (auto output = rmpp_.poll(executor_.now())) take_output(*output);
  runs_ = false;
}

void GsiTransfers::take_output(Output& output) {
  if (output.id == 0) {
    if (source_ != nullptr) sender_.transmit(*source_, output.packet);
    return;
  }
  Transfer& transfer = transfers_.at(output.id);
  switch (output.kind) {
    case Output::Kind::Packet: return sender_.transmit(transfer.address, output.packet);
    case Output::Kind::Sent:
      if (transfer.request != 0) {
        of_requests_.at(transfer.request).sending = 0;
        return handler_->on_request_sent(transfer.request);
      }
      return report_sent(transfer, Status::Ok, "");
    case Output::Kind::SendFailed:
    case Output::Kind::ReceiveFailed: {
      const Status status = status_of(output.status, output.by_peer);
      const std::string reason = text_of(output.status, output.by_peer);
      if (transfer.request != 0)
        return handler_->on_request_failed(transfer.request, status, reason);
      if (transfer.is_send) report_sent(transfer, status, reason);
      return;
    }
    case Output::Kind::Received: {
      const GsiAddress from = transfer.address;
      const mad::TransactionId request = std::exchange(transfer.request, 0);
      return take_message(from, request, output.message);
    }
    case Output::Kind::Over: transfers_.erase(output.id); return;
  }
}

void GsiTransfers::report_sent(Transfer& transfer, Status status, const std::string& reason) {
  if (!transfer.on_sent) return;
  agents_.call_later(transfer.agent, [call = std::exchange(transfer.on_sent, {}), status, reason] {
    call(status, reason);
  });
}

void GsiTransfers::take_message(const GsiAddress& from, mad::TransactionId request,
                                std::span<const std::byte> bytes) {
  const GsiMessage message{from, header_of(bytes), bytes};
  if (request == 0) {
    // An answer whose request has just been withdrawn is nobody's.
    return mad::is_response(message.header.method) ? void() : handler_->on_request(message);
  }
  of_requests_.at(request).receiving = 0;
  handler_->on_answer(request, message);
}

void GsiTransfers::cancel(mad::TransactionId request) {
  const auto ended = of_requests_.extract(request);
  if (!ended.empty()) {
    for (const mad::Rmpp::Id id : {ended.mapped().sending, ended.mapped().receiving}) {
      const auto found = transfers_.find(id);
      if (found == transfers_.end()) continue;
      found->second.request = 0;
      rmpp_.cancel(id);
    }
  }
  run();
}

void GsiTransfers::cancel_all(Status status, const std::string& reason) {
  cancel_if([](const Transfer&) { return true; }, status, reason);
}

void GsiTransfers::cancel_all_of_port(std::uint32_t port, Status status,
                                      const std::string& reason) {
  cancel_if([port](const Transfer& transfer) { return transfer.address.port == port; }, status,
            reason);
}

void GsiTransfers::cancel_all_of_agent(AgentId agent) {
  cancel_if([agent](const Transfer& transfer) { return transfer.agent == agent; }, Status::Ok, "");
}

void GsiTransfers::cancel_if(const std::function<bool(const Transfer&)>& condition, Status status,
                             const std::string& reason) {
  std::vector<mad::Rmpp::Id> ended;
  for (auto& [id, transfer] : transfers_) {
    if (transfer.request != 0 || !condition(transfer)) continue;
    if (status != Status::Ok) report_sent(transfer, status, reason);
    ended.push_back(id);
  }
  for (const mad::Rmpp::Id id : ended) rmpp_.cancel(id);
  run();
}

}  // namespace ib::services
