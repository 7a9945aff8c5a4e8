// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/class_port_info.h"
#include "mad/mgmt_class.h"
#include "services/gsi/messages_internal.h"
#include "services/gsi/requests_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {

void GsiRequests::transmit(mad::TransactionId id, const Request& request) {
  if (!needs_rmpp(request.message))
    return sender_.transmit(request.to, first_packet(request.message));
  transactions_.suspend(id);
  const Status sent = transfers_.send_request(id, request.to, request.message);
  if (sent == Status::Ok) return;
  sender_.count_failure();
  transactions_.resume(id, executor_.now());
}

Result<RequestId> GsiRequests::begin(AgentId agent, const GsiRequest& request,
                                     OnGsiAnswer on_answer) {
  const mad::MadHeader header = header_of(request.message);
  if (transactions_.size_of(agent) >= agents_.find(agent)->max_requests) {
    return Status::LimitExceeded;
  }
  IB_TRY(id,
         transactions_.begin({agent, header.mgmt_class, peer_of(request.to.port, request.to.remote),
                              request.timeout, request.retries},
                             executor_.now()));
  Request& entry = requests_[id];
  entry.to = request.to;
  entry.message.assign(request.message.begin(), request.message.end());
  entry.own_tid = header.transaction_id;
  entry.on_answer = std::move(on_answer);
  if (!entry.on_answer) entry.on_answer = [](Status, std::string_view, const GsiMessage*) {};
  const Be64 tid = id;
  std::memcpy(entry.message.data() + offsetof(mad::MadHeader, transaction_id), &tid, sizeof tid);
  transmit(id, entry);
  return id;
}

Result<RequestId> GsiRequests::begin(AgentId agent, const GsiRequest& request, GsiAnswer& answer,
                                     io::IrpRef& irp) {
  io::IrpQueue& queue = irp_slots_.take();
  const auto on_answer = [&queue, &answer](Status status, std::string_view reason,
                                           const GsiMessage* message) {
    std::optional<io::IrpRef> waiting = queue.take();
    if (!waiting) return;  // it was cancelled: `answer` may be gone
    if (status != Status::Ok) return (*std::move(waiting)).fail(status, std::string(reason));
    answer.from = message->from;
    answer.bytes.assign(message->bytes.begin(), message->bytes.end());
    (*std::move(waiting)).complete(Status::Ok, answer.bytes.size());
  };
  const Result<RequestId> begun = begin(agent, request, on_answer);
  if (!begun) {
    irp_slots_.put(queue);
    return begun;
  }
  requests_.at(*begun).irp = &queue;
  queue.park(std::move(irp));
  return begun;
}

void GsiRequests::cancel(RequestId request) {
  if (request == 0) return;
  if (transactions_.end(request)) (void)take(request);
  agents_.cancel_calls_of(request);
}

std::optional<GsiRequests::Request> GsiRequests::take(mad::TransactionId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return std::nullopt;
  Request request = std::move(found->second);
  requests_.erase(found);
  if (request.irp != nullptr) irp_slots_.put(*request.irp);
  transfers_.cancel(id);
  return request;
}

void GsiRequests::finish(mad::TransactionId id, Status status, std::string_view reason,
                         const GsiMessage* answer) {
  transactions_.end(id);
  const std::optional<Request> request = take(id);
  if (!request) return;
  if (answer == nullptr) return request->on_answer(status, reason, nullptr);
  std::vector<std::byte> bytes(answer->bytes.begin(), answer->bytes.end());
  const Be64 tid = request->own_tid;
  std::memcpy(bytes.data() + offsetof(mad::MadHeader, transaction_id), &tid, sizeof tid);
  GsiMessage own{answer->from, answer->header, bytes};
  own.header.transaction_id = tid;
  request->on_answer(status, reason, &own);
}

void GsiRequests::give_up(mad::TransactionId id, Status status, const std::string& reason) {
  transactions_.end(id);
  std::optional<Request> request = take(id);
  if (!request) return;
  if (request->irp != nullptr) return request->on_answer(status, reason, nullptr);
  const auto call = [on_answer = std::move(request->on_answer), status, reason] {
    on_answer(status, reason, nullptr);
  };
  agents_.call_later(mad::agent_of(id), call, id);
}

void GsiRequests::give_up_all(Status status, const std::string& reason) {
  for (const mad::TransactionId id : transactions_.end_all()) give_up(id, status, reason);
}

void GsiRequests::give_up_all_of_port(std::uint32_t port, Status status,
                                      const std::string& reason) {
  std::vector<mad::TransactionId> lost;
  for (const auto& [id, request] : requests_) {
    if (request.to.port == port) lost.push_back(id);
  }
  for (const mad::TransactionId id : lost) give_up(id, status, reason);
}

void GsiRequests::cancel_all_of_agent(AgentId agent) {
  for (const mad::TransactionId id : transactions_.end_all(agent)) {
    if (requests_.at(id).irp != nullptr) {
      give_up(id, Status::Cancelled, "its agent was removed");
    } else {
      (void)take(id);
    }
  }
}

bool GsiRequests::is_awaited(const GsiAddress& from, const mad::MadHeader& header) const {
  return transactions_.is_awaited(header.transaction_id, header.mgmt_class,
                                  peer_of(from.port, from.remote));
}

void GsiRequests::on_answer(mad::TransactionId id, const GsiMessage& answer) {
  const bool is_redirection = (answer.header.status & mad::mad_status::kRedirect) != 0;
  if (is_redirection && follow_redirection(id, answer.bytes)) return;
  finish(id, Status::Ok, "", &answer);
}

// Returns false if there is nowhere to go, or the request has been redirected before: then the
// answer is that of the request.
bool GsiRequests::follow_redirection(mad::TransactionId id, std::span<const std::byte> answer) {
  Request& request = requests_.at(id);
  if (request.is_redirected) return false;
  const auto mgmt_class =
      std::to_integer<std::uint8_t>(answer[offsetof(mad::MadHeader, mgmt_class)]);
  mad::ClassPortInfo info;
  std::memcpy(&info, answer.data() + mad::attribute_offset(mgmt_class), sizeof info);
  const std::uint32_t qpn = info.redirect_qpn & 0xff'ffff;
  const bool by_gid = info.redirect_gid != verbs::Gid{};
  const bool is_unicast = info.redirect_lid != 0 && info.redirect_lid <= fabric::kLastUnicastLid;
  if (qpn == 0 || (!by_gid && !is_unicast)) return false;
  const fabric::Port* port = fabric_.graph().port(request.to.port);
  const std::uint32_t route = info.redirect_tclass_sl_flow;
  al::MadAddress& to = request.to.remote;
  al::MadRoute global = to.route.value_or(al::MadRoute{});
  to = {};
  to.lid = is_unicast && !port->is_ethernet() ? std::uint16_t{info.redirect_lid} : std::uint16_t{0};
  to.sl = static_cast<std::uint8_t>(route >> 20 & 15);
  to.qpn = qpn;
  to.qkey = info.redirect_qkey;
  const auto pkey = std::ranges::find(port->pkeys, std::uint16_t{info.redirect_pkey});
  if (pkey != port->pkeys.end()) {
    to.pkey_index = static_cast<std::uint16_t>(pkey - port->pkeys.begin());
  }
  if (by_gid) {
    global.gid = info.redirect_gid;
    global.traffic_class = static_cast<std::uint8_t>(route >> 24);
    global.flow_label = route & 0xfffff;
    to.route = global;
  }
  request.is_redirected = true;
  transactions_.redirect(id, peer_of(request.to.port, to), executor_.now());
  transmit(id, request);
  return true;
}

void GsiRequests::run() {
  const Instant now = executor_.now();
  while (const auto event = transactions_.poll(now)) {
    const auto found = requests_.find(event->id);
    if (found == requests_.end()) continue;
    const Request& request = found->second;
    const bool is_cancelled = request.irp != nullptr && request.irp->size() == 0;
    if (is_cancelled) {
      cancel(event->id);
      (void)take(event->id);  // if that was its last try
    } else if (event->due == mad::Transactions::Due::Resend) {
      if (!needs_rmpp(request.message)) transmit(event->id, request);
    } else {
      const std::string reason = fmt::format("no answer from {}", text_of(request.to.remote));
      finish(event->id, Status::Timeout, reason, nullptr);
    }
  }
}

}  // namespace ib::services
