// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests, their tries and their answers; and what is sent without waiting for an answer.
#include "mad/mgmt_class.h"
#include "services/gsi/gsi_state_internal.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {
namespace {

constexpr std::size_t kMostBytes = 16u << 20;  // of a message

mad::MadHeader header_of(std::span<const std::byte> message) {
  mad::MadHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  return header;
}

mad::Mad first_packet(std::span<const std::byte> message) {
  mad::Mad mad{};
  std::copy_n(message.begin(), std::min(message.size(), mad.size()), mad.begin());
  return mad;
}

}  // namespace

std::string text_of(const al::MadAddress& address) {
  const bool by_gid = address.route && address.lid == 0;
  return by_gid ? verbs::address_text(address.route->gid) : fmt::format("LID {}", address.lid);
}

mad::Peer peer_of(std::uint32_t port, const al::MadAddress& remote) {
  return {port, remote.lid, remote.qpn, remote.route ? remote.route->gid : verbs::Gid{}};
}

Status Gsi::State::check(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                         bool is_response) const {
  const mad::AgentKey* key = table_.find(agent);
  if (key == nullptr || message.size() < sizeof(mad::MadHeader) || message.size() > kMostBytes) {
    return Status::InvalidParameter;
  }
  const mad::MadHeader header = header_of(message);
  const bool is_long = message.size() > mad::kMadSize;
  if (header.mgmt_class != key->mgmt_class || mad::is_response(header.method) != is_response ||
      (is_long && !mad::has_rmpp(header.mgmt_class))) {
    return Status::InvalidParameter;
  }
  if (needs_rmpp(message) && message.size() < mad::header_size(header.mgmt_class)) {
    return Status::InvalidParameter;
  }
  const bool has_oui = mad::has_oui(header.mgmt_class);
  if (has_oui &&
      (message.size() < mad::header_size(header.mgmt_class) || mad::oui_of(message) != key->oui)) {
    return Status::InvalidParameter;
  }
  return closed_ || find(to.port).node == nullptr ? Status::InvalidState : Status::Ok;
}

void Gsi::State::transmit(const GsiAddress& to, const mad::Mad& mad) {
  PortQueue* port = find(to.port).port;
  if (port == nullptr) {
    ++counters.sends_failed;
  } else {
    static_cast<void>(put(*port, to, mad));
  }
}

Status Gsi::State::put(PortQueue& port, const GsiAddress& to, const mad::Mad& mad) {
  if (on_send_) on_send_(to, mad);
  const Status sent = port.send(to.remote, mad);
  ++(sent == Status::Ok ? counters.sent : counters.sends_failed);
  return sent;
}

void Gsi::State::transmit(mad::TransactionId id, const Request& request) {
  if (!needs_rmpp(request.message)) return transmit(request.to, first_packet(request.message));
  transactions_.suspend(id);
  const Status sent = send_transfer({request.to, 0, id, true, {}}, request.message, true);
  if (sent == Status::Ok) return;
  ++counters.sends_failed;
  transactions_.resume(id, system_.executor.now());
}

Result<RequestId> Gsi::State::request(AgentId agent, const GsiRequest& request,
                                      OnGsiAnswer on_answer) {
  IB_CHECK(check(agent, request.to, request.message, false));
  const mad::MadHeader header = header_of(request.message);
  if (transactions_.size_of(agent) >= find_agent(agent)->max_requests) {
    return Status::LimitExceeded;
  }
  IB_TRY(id,
         transactions_.begin({agent, header.mgmt_class, peer_of(request.to.port, request.to.remote),
                              request.timeout, request.retries},
                             system_.executor.now()));
  Request& entry = requests_[id];
  entry.to = request.to;
  entry.message.assign(request.message.begin(), request.message.end());
  entry.own_tid = header.transaction_id;
  entry.on_answer = std::move(on_answer);
  if (!entry.on_answer) entry.on_answer = [](Status, std::string_view, const GsiMessage*) {};
  const Be64 tid = id;
  std::memcpy(entry.message.data() + offsetof(mad::MadHeader, transaction_id), &tid, sizeof tid);
  transmit(id, entry);
  arm_timer();
  return id;
}

io::IrpQueue& Gsi::State::irp_slot() {
  if (free_slots_.empty()) {
    irp_slots_.push_back(std::make_unique<io::IrpQueue>());
    return *irp_slots_.back();
  }
  io::IrpQueue& queue = *free_slots_.back();
  free_slots_.pop_back();
  return queue;
}

void Gsi::State::request(AgentId agent, const GsiRequest& request, GsiAnswer& answer,
                         io::IrpRef irp) {
  io::IrpQueue& queue = irp_slot();
  const auto on_answer = [&queue, &answer](Status status, std::string_view reason,
                                           const GsiMessage* message) {
    std::optional<io::IrpRef> waiting = queue.take();
    if (!waiting) return;  // it was cancelled: `answer` may be gone
    if (status != Status::Ok) return (*std::move(waiting)).fail(status, std::string(reason));
    answer.from = message->from;
    answer.bytes.assign(message->bytes.begin(), message->bytes.end());
    (*std::move(waiting)).complete(Status::Ok, answer.bytes.size());
  };
  const auto begun = this->request(agent, request, on_answer);
  if (!begun) {
    free_slots_.push_back(&queue);
    return std::move(irp).fail(begun.error(), "this request cannot be sent");
  }
  requests_.at(*begun).irp = &queue;
  queue.park(std::move(irp));
}

void Gsi::State::cancel(RequestId request) {
  if (request == 0) return;
  if (transactions_.end(request)) (void)take_request(request);
  std::erase_if(later_, [request](const Later& each) { return each.request == request; });
  arm_timer();
}

std::optional<Gsi::State::Request> Gsi::State::take_request(mad::TransactionId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return std::nullopt;
  Request request = std::move(found->second);
  requests_.erase(found);
  if (request.irp != nullptr) free_slots_.push_back(request.irp);
  cancel_transfers(request);
  return request;
}

void Gsi::State::finish(mad::TransactionId id, Status status, std::string_view reason,
                        const GsiMessage* answer) {
  transactions_.end(id);
  const std::optional<Request> request = take_request(id);
  if (!request) return;
  if (answer == nullptr) return request->on_answer(status, reason, nullptr);
  std::vector<std::byte> bytes(answer->bytes.begin(), answer->bytes.end());
  const Be64 tid = request->own_tid;
  std::memcpy(bytes.data() + offsetof(mad::MadHeader, transaction_id), &tid, sizeof tid);
  GsiMessage own{answer->from, answer->header, bytes};
  own.header.transaction_id = tid;
  request->on_answer(status, reason, &own);
}

void Gsi::State::give_up(mad::TransactionId id, Status status, const std::string& reason) {
  transactions_.end(id);
  std::optional<Request> request = take_request(id);
  if (!request) return;
  if (request->irp != nullptr) return request->on_answer(status, reason, nullptr);
  const auto call = [on_answer = std::move(request->on_answer), status, reason] {
    on_answer(status, reason, nullptr);
  };
  later(mad::agent_of(id), call, id);
}

void Gsi::State::fail_all_of(std::uint32_t port) {
  std::vector<mad::TransactionId> lost;
  for (const auto& [id, request] : requests_) {
    if (request.to.port == port) lost.push_back(id);
  }
  for (const mad::TransactionId id : lost) {
    give_up(id, Status::DeviceRemoved, "the HCA of its port is gone");
  }
  cancel_transfers_if([port](const Transfer& transfer) { return transfer.address.port == port; },
                      Status::DeviceRemoved, "the HCA of its port is gone");
}

void Gsi::State::arm_timer() {
  std::optional<Instant> due = transactions_.next_deadline();
  const std::optional<Instant> of_transfers = rmpp_.next_deadline();
  if (of_transfers && (!due || *of_transfers < *due)) due = of_transfers;
  if (closed_) due.reset();
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.reset();
  if (due) timer_ = system_.executor.at(*due, [this] { on_timer(); });
}

void Gsi::State::on_timer() {
  timer_due_.reset();
  const Instant now = system_.executor.now();
  while (const auto event = transactions_.poll(now)) {
    const auto found = requests_.find(event->id);
    if (found == requests_.end()) continue;
    const Request& request = found->second;
    const bool is_cancelled = request.irp != nullptr && request.irp->size() == 0;
    if (is_cancelled) {
      cancel(event->id);
      (void)take_request(event->id);  // if that was its last try
    } else if (event->due == mad::Transactions::Due::Resend) {
      if (!needs_rmpp(request.message)) transmit(event->id, request);
    } else {
      const std::string reason = fmt::format("no answer from {}", text_of(request.to.remote));
      finish(event->id, Status::Timeout, reason, nullptr);
    }
  }
  run_transfers();
  arm_timer();
}

Status Gsi::State::send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message) {
  const bool is_response = message.size() > offsetof(mad::MadHeader, method) &&
                           mad::is_response(header_of(first_packet(message)).method);
  IB_CHECK(check(agent, to, message, is_response));
  if (message.size() > mad::kMadSize) return Status::InvalidParameter;
  PortQueue* port = find(to.port).port;
  if (port == nullptr) return Status::DeviceRemoved;
  return put(*port, to, first_packet(message));
}

Status Gsi::State::respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                           OnGsiSent on_sent) {
  IB_CHECK(check(agent, to, message, true));
  if (needs_rmpp(message)) {
    IB_CHECK(send_transfer({to, agent, 0, true, std::move(on_sent)},
                           {message.begin(), message.end()}, false));
    arm_timer();
    return Status::Ok;
  }
  transmit(to, first_packet(message));
  if (on_sent) later(agent, [call = std::move(on_sent)] { call(Status::Ok, ""); });
  return Status::Ok;
}

}  // namespace ib::services
