// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_transport.h"

#include "services/sa/fabric_topology.h"
#include "services/sa/sa_message.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services {

Status SaTransport::check(const verbs::Gid& port_gid, std::string& reason) const {
  const fabric::Port* port = fabric_.graph().find_port(port_gid);
  if (port == nullptr || port->is_ethernet()) {
    reason = fmt::format("{} is not the GID of an InfiniBand port of this fabric",
                         verbs::address_text(port_gid));
    return Status::InvalidParameter;
  }
  const std::string_view why = out_of_service(fabric_, *port);
  if (why.empty()) return Status::Ok;
  reason = fmt::format("{} {}", port_text(fabric_, *port), why);
  return port->state == verbs::PortState::Active ? Status::DeviceRemoved : Status::InvalidState;
}

// The first request opens a node; later ones go on at once, also if that failed: Gsi tries ports
// again by itself, and a port that is not open loses what is sent.
SaTransport::Opening& SaTransport::open_node(std::string_view name) {
  const auto known = nodes_.find(name);
  if (known != nodes_.end()) return *known->second;
  Opening& opening = *nodes_.emplace(std::string(name), std::make_unique<Opening>()).first->second;
  opening.owner = this;
  io::IrpRef irp = opening.irp.start(&opened, &opening);
  gsi_.ensure(name, std::move(irp));
  return opening;
}

void SaTransport::opened(io::Irp&, void* context) {
  Opening& opening = *static_cast<Opening*>(context);
  opening.is_over = true;
  for (const std::uint64_t number : std::exchange(opening.waiting, {})) {
    opening.owner->transmit(number);
  }
}

std::uint64_t SaTransport::send(sa::Outgoing outgoing, OnAnswer on_answer) {
  const std::uint64_t number = ++last_;
  pending_.emplace(number, Pending{std::move(outgoing), std::move(on_answer)});
  transmit(number);
  return pending_.contains(number) ? number : 0;
}

// Sends it, or has it wait for the node that is not open yet.
void SaTransport::transmit(std::uint64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  const sa::Outgoing& outgoing = found->second.outgoing;
  std::string reason;
  if (const Status status = check(outgoing.port_gid, reason); status != Status::Ok) {
    return finish(number, {status, 0, reason}, {});
  }
  const fabric::Port& port = *fabric_.graph().find_port(outgoing.port_gid);
  // Without the server, as with another one's, the request gets no answer.
  static_cast<void>(service_.start(reason));
  for (const fabric::Port* each : {service_.topology().manager_of(port), &port}) {
    if (each == nullptr || fabric_.hca_of(*each) == nullptr) continue;
    Opening& opening = open_node(fabric_.node_of(*fabric_.hca_of(*each)).name);
    if (!opening.is_over) return wait_for(opening, number);
  }
  found->second.limit.reset();
  const mad::Mad mad = sa_request(outgoing);
  GsiRequest request;
  request.to.port = fabric_.graph().index_of(port);
  request.to.remote.lid = port.sm_lid;
  request.message = mad;
  request.timeout = outgoing.patience.timeout;
  request.retries = outgoing.patience.retries;
  const auto sent =
      gsi_.request(agent_, request,
                   [this, number](Status status, std::string_view why, const GsiMessage* answer) {
                     if (answer == nullptr)
                       return finish(number, {status, 0, std::string(why)}, {});
                     finish(number, {Status::Ok, answer->header.status, {}}, sa_data(*answer));
                   });
  if (sent) {
    found->second.request = *sent;
  } else {
    finish(number,
           {sent.error() == Status::LimitExceeded ? Status::InsufficientResources : sent.error(), 0,
            fmt::format("the request could not be sent: {}", status_text(sent.error()))},
           {});
  }
}

void SaTransport::wait_for(Opening& opening, std::uint64_t number) {
  // Numbers of requests that have ended meanwhile do not pile up.
  if (opening.waiting.size() > 2 * pending_.size()) {
    std::erase_if(opening.waiting, [&](std::uint64_t each) { return !pending_.contains(each); });
  }
  opening.waiting.push_back(number);
  Pending& pending = pending_.at(number);
  if (pending.limit != nullptr) return;
  const sa::Patience& patience = pending.outgoing.patience;
  const Duration span = patience.timeout * (patience.retries + std::int64_t{1});
  pending.limit = executor_.at(executor_.now() + span, [this, number] {
    finish(number, {Status::Timeout, 0, "the node could not be opened in time"}, {});
  });
}

void SaTransport::finish(std::uint64_t number, const sa::Outcome& outcome,
                         std::span<const std::byte> record) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  const Pending ended = std::move(found->second);  // its timer may be what calls this
  pending_.erase(found);
  ended.on_answer(outcome, record);
}

void SaTransport::cancel(std::uint64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  if (found->second.request != 0) gsi_.cancel(found->second.request);
  pending_.erase(found);
}

void SaTransport::end_of(const verbs::Gid& port_gid, const sa::Outcome& outcome) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, pending] : pending_) {
    if (pending.outgoing.port_gid == port_gid) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) continue;  // withdrawn by the end of another one
    if (found->second.request != 0) gsi_.cancel(found->second.request);
    finish(number, outcome, {});
  }
}

}  // namespace ib::services
