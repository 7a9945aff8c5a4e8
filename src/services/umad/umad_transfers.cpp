// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/umad/umad_transfers.h"

#include "services/gsi/messages_internal.h"

#include <utility>

namespace ib::services {
namespace {

using Output = mad::Rmpp::Output;

}  // namespace

Status UmadTransfers::send(UmadSends::Id send, const UmadSend& what, Instant now) {
  IB_TRY(id, rmpp_.send(peer_of(what.to.port, what.to.remote), what.message,
                        what.has_response_time(), now));
  transfers_[id] = {what.to, what.agent, send, 0};
  run(now);
  return Status::Ok;
}

bool UmadTransfers::on_packet(UmadAgentNumber agent, UmadSends::Id request, const GsiAddress& from,
                              const mad::Mad& mad, Instant now) {
  const bool may_begin = !is_umad_response(mad) || request != 0;
  const auto id = rmpp_.on_packet(peer_of(from.port, from.remote), mad, may_begin, now);
  const bool is_new = id != 0 && !transfers_.contains(id);
  if (is_new) transfers_[id] = {from, agent, 0, is_umad_response(mad) ? request : 0};
  source_ = &from;
  run(now);
  source_ = nullptr;
  return is_new && is_umad_response(mad);
}

void UmadTransfers::run(Instant now) {
  if (runs_) return;
  runs_ = true;
  while (auto output = rmpp_.poll(now)) take_output(*output);
  runs_ = false;
}

void UmadTransfers::take_output(Output& output) {
  if (output.id == 0) {
    if (source_ != nullptr) handler_.transmit(*source_, output.packet);
    return;
  }
  Transfer& transfer = transfers_.at(output.id);
  switch (output.kind) {
    case Output::Kind::Packet: return handler_.transmit(transfer.address, output.packet);
    case Output::Kind::Sent: return handler_.on_sent(std::exchange(transfer.send, 0));
    case Output::Kind::SendFailed:
    case Output::Kind::ReceiveFailed: return take_failure(transfer, output);
    case Output::Kind::Received:
      return handler_.on_message(std::exchange(transfer.agent, 0),
                                 std::exchange(transfer.request, 0), transfer.address,
                                 output.message);
    case Output::Kind::Over: transfers_.erase(output.id); return;
  }
}

void UmadTransfers::take_failure(Transfer& transfer, const Output& output) {
  if (transfer.send != 0) {
    const bool is_late = !output.by_peer && output.status == mad::RmppStatus::TooManyRetries;
    return handler_.on_send_failed(std::exchange(transfer.send, 0), is_late);
  }
  if (transfer.request != 0) handler_.on_answer_failed(std::exchange(transfer.request, 0));
}

void UmadTransfers::cancel(UmadSends::Id send) {
  for (auto& [id, transfer] : transfers_) {
    if (transfer.send != send && transfer.request != send) continue;
    transfer.send = transfer.request = 0;
    rmpp_.cancel(id);
  }
}

void UmadTransfers::cancel_all_of_agent(UmadAgentNumber agent) {
  for (auto& [id, transfer] : transfers_) {
    if (transfer.agent != agent) continue;
    transfer.send = transfer.request = 0;
    rmpp_.cancel(id);
  }
}

}  // namespace ib::services
