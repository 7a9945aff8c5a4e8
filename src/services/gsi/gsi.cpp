// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of agents, and what they set going.
#include "services/gsi/gsi.h"

#include "mad/mgmt_class.h"
#include "services/gsi/gsi_state_internal.h"
#include "services/gsi/messages_internal.h"

#include <utility>

namespace ib::services {
namespace {

constexpr std::size_t kMostBytes = 16u << 20;  // of a message

}  // namespace

Gsi::Gsi(al::System& system, const fabric::Fabric& fabric, const Options& options)
    : state_(std::make_unique<State>(system, fabric, options)) {}
Gsi::~Gsi() = default;

void Gsi::ensure(std::string_view node, io::IrpRef irp) {
  state_->ensure(node, std::move(irp));
}
bool Gsi::is_open(std::uint32_t port) const {
  return state_->is_open(port);
}
std::vector<GsiPort> Gsi::ports() const {
  return state_->nodes().ports();
}
void Gsi::let_go(const fabric::Hca& hca, std::function<void()> done) {
  state_->nodes().let_go(hca, std::move(done));
}
void Gsi::let_back(const fabric::Hca& hca) {
  state_->let_back(hca);
}
void Gsi::close(io::IrpRef irp) {
  state_->close(std::move(irp));
}
Result<AgentId> Gsi::add_agent(GsiAgent agent, std::string& reason) {
  return state_->add_agent(std::move(agent), reason);
}
void Gsi::set_first(GsiFirst* first) {
  state_->set_first(first);
}
Status Gsi::transmit(const GsiAddress& to, const mad::Mad& mad) {
  return state_->transmit(to, mad);
}
void Gsi::remove_agent(AgentId agent) {
  state_->remove_agent(agent);
}
Result<RequestId> Gsi::request(AgentId agent, const GsiRequest& request, OnGsiAnswer on_answer) {
  return state_->request(agent, request, std::move(on_answer));
}
void Gsi::request(AgentId agent, const GsiRequest& request, GsiAnswer& answer, io::IrpRef irp) {
  state_->request(agent, request, answer, std::move(irp));
}
void Gsi::cancel(RequestId request) {
  state_->cancel(request);
}
Status Gsi::send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message) {
  return state_->send(agent, to, message);
}
std::uint64_t Gsi::make_tid(AgentId agent) {
  return state_->make_tid(agent);
}
Status Gsi::respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                    OnGsiSent on_sent) {
  return state_->respond(agent, to, message, std::move(on_sent));
}
const GsiCounters& Gsi::counters() const {
  return state_->counters();
}
std::size_t Gsi::under_way() const {
  return state_->under_way();
}

Gsi::State::State(al::System& system, const fabric::Fabric& fabric, const Options& options)
    : executor_(system.executor),
      nodes_(system, fabric, *this),
      agents_(executor_),
      closed_ends_(system, fabric, options.element_agents,
                   [this](std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) {
                     if (is_open(port)) on_mad(port, from, mad);
                   }),
      sender_(nodes_, closed_ends_, options.on_send, counters_),
      transfers_(executor_, agents_, sender_, options.rmpp),
      requests_(executor_, fabric, agents_, sender_, transfers_, options.seed),
      dispatch_(fabric, {agents_, sender_, transfers_, requests_}, counters_, options.on_drop) {}

Gsi::State::~State() {
  IB_ASSERT(!close_);
}

void Gsi::State::ensure(std::string_view node, io::IrpRef irp) {
  if (closed_) return std::move(irp).fail(Status::InvalidState, "the services are closed");
  nodes_.ensure(node, std::move(irp));
}

bool Gsi::State::is_open(std::uint32_t port) const {
  const PortQueue* queue = nodes_.find_port(port);
  return queue != nullptr && queue->is_open();
}

void Gsi::State::close(io::IrpRef irp) {
  if (closed_) return std::move(irp).fail(Status::InvalidState, "the services are closed");
  closed_ = true;
  close_.emplace(std::move(irp));
  requests_.give_up_all(Status::Cancelled, "the services are being closed");
  transfers_.cancel_all(Status::Cancelled, "the services are being closed");
  arm_timer();
  nodes_.close([this] { end_close(); });
}

// After the access layer has given back what it had of the driver, which it does last of all.
void Gsi::State::end_close() {
  executor_.post([this] {
    agents_.run_calls();
    nodes_.cancel_ensures();
    io::IrpRef irp = *std::move(close_);
    close_.reset();
    std::move(irp).complete(Status::Ok);  // `this` may be gone now
  });
}

Result<AgentId> Gsi::State::add_agent(GsiAgent agent, std::string& reason) {
  const bool hears = static_cast<bool>(agent.on_port);
  IB_TRY(id, agents_.add(std::move(agent), reason));
  if (!hears) return id;
  for (const GsiPort& port : nodes_.ports()) {
    if (port.is_open) agents_.tell(id, {port.port, GsiPortChange::Opened});
  }
  return id;
}

void Gsi::State::remove_agent(AgentId agent) {
  if (!agents_.remove(agent)) return;
  transfers_.cancel_all_of_agent(agent);
  requests_.cancel_all_of_agent(agent);
  arm_timer();
}

void Gsi::State::on_port(const GsiPortEvent& event) {
  if (closed_) return;
  if (event.change == GsiPortChange::Closed) {
    const std::string reason = "the HCA of its port is gone";
    requests_.give_up_all_of_port(event.port, Status::DeviceRemoved, reason);
    transfers_.cancel_all_of_port(event.port, Status::DeviceRemoved, reason);
  }
  if (GsiFirst* first = dispatch_.first()) first->on_port(event);
  agents_.tell_all(event);
}

void Gsi::State::on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) {
  if (closed_) return;
  dispatch_.on_mad(port, from, mad);
  arm_timer();
}

Status Gsi::State::check(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                         bool is_response) const {
  const mad::AgentKey* key = agents_.find_key(agent);
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
  return closed_ || !nodes_.has_node_of(to.port) ? Status::InvalidState : Status::Ok;
}

Result<RequestId> Gsi::State::request(AgentId agent, const GsiRequest& request,
                                      OnGsiAnswer on_answer) {
  IB_CHECK(check(agent, request.to, request.message, false));
  const Result<RequestId> begun = requests_.begin(agent, request, std::move(on_answer));
  arm_timer();
  return begun;
}

void Gsi::State::request(AgentId agent, const GsiRequest& request, GsiAnswer& answer,
                         io::IrpRef irp) {
  Status status = check(agent, request.to, request.message, false);
  if (status == Status::Ok) {
    const Result<RequestId> begun = requests_.begin(agent, request, answer, irp);
    arm_timer();
    if (begun) return;
    status = begun.error();
  }
  std::move(irp).fail(status, "this request cannot be sent");
}

void Gsi::State::cancel(RequestId request) {
  requests_.cancel(request);
  arm_timer();
}

Status Gsi::State::send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message) {
  const bool is_response = message.size() > offsetof(mad::MadHeader, method) &&
                           mad::is_response(header_of(first_packet(message)).method);
  IB_CHECK(check(agent, to, message, is_response));
  if (message.size() > mad::kMadSize) return Status::InvalidParameter;
  return sender_.send(to, first_packet(message));
}

Status Gsi::State::respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                           OnGsiSent on_sent) {
  IB_CHECK(check(agent, to, message, true));
  if (needs_rmpp(message)) {
    IB_CHECK(
        transfers_.send_response(agent, to, {message.begin(), message.end()}, std::move(on_sent)));
    arm_timer();
    return Status::Ok;
  }
  sender_.transmit(to, first_packet(message));
  if (on_sent) agents_.call_later(agent, [call = std::move(on_sent)] { call(Status::Ok, ""); });
  return Status::Ok;
}

void Gsi::State::arm_timer() {
  std::optional<Instant> due = requests_.next_deadline();
  const std::optional<Instant> of_transfers = transfers_.next_deadline();
  if (of_transfers && (!due || *of_transfers < *due)) due = of_transfers;
  if (closed_) due.reset();
  if (due == timer_due_) return;
  timer_due_ = due;
  timer_.reset();
  if (due) timer_ = executor_.at(*due, [this] { on_timer(); });
}

void Gsi::State::on_timer() {
  timer_due_.reset();
  requests_.run();
  transfers_.run();
  arm_timer();
}

}  // namespace ib::services
