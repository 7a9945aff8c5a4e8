// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages of several packets (RMPP), as requests, as answers, and as requests that come.
#include "mad/mgmt_class.h"
#include "services/gsi/gsi_state_internal.h"

#include <fmt/format.h>

#include <cstring>
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

bool Gsi::State::needs_rmpp(std::span<const std::byte> message) {
  if (message.size() > mad::kMadSize) return true;
  return message.size() >= mad::kRmppDataOffset && mad::is_rmpp(message);
}

Status Gsi::State::send_transfer(Transfer transfer, std::vector<std::byte> message,
                                 bool is_answered) {
  const mad::Peer peer = peer_of(transfer.address.port, transfer.address.remote);
  IB_TRY(id, rmpp_.send(peer, std::move(message), is_answered, system_.executor.now()));
  if (transfer.request != 0) requests_.at(transfer.request).sending = id;
  transfer.is_send = true;
  transfers_[id] = std::move(transfer);
  run_transfers();
  return Status::Ok;
}

// A packet of a message, or about one. It may begin one that somebody waits for.
void Gsi::State::on_packet(const GsiAddress& from, const mad::MadHeader& header,
                           const mad::Mad& mad) {
  const mad::Peer peer = peer_of(from.port, from.remote);
  const mad::TransactionId tid = header.transaction_id;
  const bool is_answer = mad::is_response(header.method);
  const bool is_awaited = is_answer && transactions_.is_awaited(tid, header.mgmt_class, peer);
  const bool may_start = is_awaited || (!is_answer && table_.match(from.port, mad).agent != 0);
  const auto id = rmpp_.on_packet(peer, mad, may_start, system_.executor.now());
  if (id != 0 && !transfers_.contains(id)) {
    transfers_[id] = {from, 0, is_answer ? tid : 0, false, {}};
    if (is_answer) {
      requests_.at(tid).receiving = id;
      transactions_.suspend(tid);
    }
  }
  source_ = &from;
  run_transfers();
  source_ = nullptr;
  arm_timer();
}

// Not from inside itself: a callback may begin or end a transfer.
void Gsi::State::run_transfers() {
  if (runs_transfers_) return;
  runs_transfers_ = true;
  while (auto output = rmpp_.poll(system_.executor.now())) take_output(*output);
  runs_transfers_ = false;
}

void Gsi::State::take_output(Output& output) {
  if (output.id == 0) {
    if (source_ != nullptr) transmit(*source_, output.packet);
    return;
  }
  Transfer& transfer = transfers_.at(output.id);
  switch (output.kind) {
    case Output::Kind::Packet: return transmit(transfer.address, output.packet);
    case Output::Kind::Sent:
      if (transfer.request != 0) {
        requests_.at(transfer.request).sending = 0;
        return transactions_.resume(transfer.request, system_.executor.now());
      }
      return report_sent(transfer, Status::Ok, "");
    case Output::Kind::SendFailed:
    case Output::Kind::ReceiveFailed: {
      const Status status = status_of(output.status, output.by_peer);
      const std::string reason = text_of(output.status, output.by_peer);
      if (transfer.request != 0) return give_up(transfer.request, status, reason);
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

void Gsi::State::report_sent(Transfer& transfer, Status status, const std::string& reason) {
  if (!transfer.on_sent) return;
  later(transfer.agent,
        [call = std::exchange(transfer.on_sent, {}), status, reason] { call(status, reason); });
}

void Gsi::State::take_message(const GsiAddress& from, mad::TransactionId request,
                              std::span<const std::byte> bytes) {
  mad::MadHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (request == 0) {
    // An answer whose request has just been withdrawn is nobody's.
    return mad::is_response(header.method) ? void() : on_request(from, header, bytes);
  }
  requests_.at(request).receiving = 0;
  const GsiMessage answer{from, header, bytes};
  finish(request, Status::Ok, "", &answer);
}

// Those of a request that is over.
void Gsi::State::cancel_transfers(const Request& request) {
  for (const mad::Rmpp::Id id : {request.sending, request.receiving}) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) continue;
    found->second.request = 0;
    rmpp_.cancel(id);
  }
  run_transfers();
}

void Gsi::State::cancel_transfers_if(const std::function<bool(const Transfer&)>& condition,
                                     Status status, const std::string& reason) {
  std::vector<mad::Rmpp::Id> ended;
  for (auto& [id, transfer] : transfers_) {
    if (transfer.request != 0 || !condition(transfer)) continue;
    if (status != Status::Ok) report_sent(transfer, status, reason);
    ended.push_back(id);
  }
  for (const mad::Rmpp::Id id : ended) rmpp_.cancel(id);
  run_transfers();
}

}  // namespace ib::services
