// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Agents and nodes.
#include "services/gsi/gsi.h"

#include "services/gsi/gsi_state_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::services {

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
  return state_->ports();
}
void Gsi::let_go(const fabric::Hca& hca, std::function<void()> done) {
  state_->let_go(hca, std::move(done));
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
  return state_->counters;
}
std::size_t Gsi::under_way() const {
  return state_->under_way();
}

Gsi::State::State(al::System& system, const fabric::Fabric& fabric, const Options& options)
    : system_(system),
      fabric_(fabric),
      on_send_(options.on_send),
      on_drop_(options.on_drop),
      transactions_({}, static_cast<std::uint32_t>(options.seed)),
      rmpp_(options.rmpp) {}

Gsi::State::~State() {
  IB_ASSERT(nodes_.empty() && !close_);
}

void Gsi::State::ensure(std::string_view name, io::IrpRef irp) {
  if (closed_) return std::move(irp).fail(Status::InvalidState, "the services are closed");
  const fabric::Node* found = fabric_.find_node(name);
  if (found == nullptr) {
    return std::move(irp).fail(Status::NotFound,
                               fmt::format("this fabric has no node \"{}\"", name));
  }
  const auto index = static_cast<std::uint32_t>(found - fabric_.nodes().data());
  std::unique_ptr<GsiNode>& node = nodes_[index];
  if (node == nullptr) {
    node = std::make_unique<GsiNode>(system_, driver_, fabric_, *found, *this);
  }
  std::string ignored;
  if (node->is_settled() && node->first_problem(ignored) == Status::Ok) {
    return std::move(irp).complete(Status::Ok);
  }
  ensures_[index].park(std::move(irp));
  node->open();
}

void Gsi::State::on_settled(GsiNode& node) {
  std::string reason;
  const Status status = node.first_problem(reason);
  const auto index = static_cast<std::uint32_t>(&node.node() - fabric_.nodes().data());
  std::vector<io::IrpRef> done;
  while (auto irp = ensures_[index].take()) done.push_back(*std::move(irp));
  for (io::IrpRef& irp : done) {
    if (status == Status::Ok) {
      std::move(irp).complete(Status::Ok);
    } else {
      std::move(irp).fail(status, reason);
    }
  }
}

Gsi::State::Place Gsi::State::find(std::uint32_t port) const {
  const fabric::Port* place = fabric_.graph().port(port);
  const fabric::Hca* hca = place != nullptr ? fabric_.hca_of(*place) : nullptr;
  const auto node = hca != nullptr ? nodes_.find(hca->node) : nodes_.end();
  if (node == nodes_.end()) return {};
  return {node->second.get(), node->second->find(port)};
}

bool Gsi::State::is_open(std::uint32_t port) const {
  const Place place = find(port);
  return place.port != nullptr && place.port->is_open();
}

std::vector<GsiPort> Gsi::State::ports() const {
  std::vector<GsiPort> ports;
  for (const auto& [index, node] : nodes_) node->list(ports);
  return ports;
}

void Gsi::State::let_go(const fabric::Hca& hca, std::function<void()> done) {
  const auto node = nodes_.find(hca.node);
  if (node == nodes_.end()) return done();
  node->second->let_go(hca.node_guid, std::move(done));
}

void Gsi::State::let_back(const fabric::Hca& hca) {
  const auto node = nodes_.find(hca.node);
  if (node != nodes_.end()) node->second->let_back(hca.node_guid);
}

void Gsi::State::close(io::IrpRef irp) {
  if (closed_) return std::move(irp).fail(Status::InvalidState, "the services are closed");
  closed_ = true;
  close_.emplace(std::move(irp));
  for (const mad::TransactionId id : transactions_.end_all()) {
    give_up(id, Status::Cancelled, "the services are being closed");
  }
  const auto all_of_them = [](const Transfer&) { return true; };
  cancel_transfers_if(all_of_them, Status::Cancelled, "the services are being closed");
  arm_timer();
  std::vector<GsiNode*> all;
  for (const auto& [index, node] : nodes_) all.push_back(node.get());
  for (GsiNode* node : all) node->close();
  if (all.empty()) end_close();
}

void Gsi::State::on_closed(GsiNode& node) {
  const auto index = static_cast<std::uint32_t>(&node.node() - fabric_.nodes().data());
  nodes_.erase(index);
  if (nodes_.empty()) end_close();
}

// After the access layer has given back what it had of the driver, which it does last of all.
void Gsi::State::end_close() {
  system_.executor.post([this] {
    run_later();
    for (auto& [index, queue] : ensures_) {
      queue.fail_all(Status::Cancelled, "the services are being closed");
    }
    io::IrpRef irp = *std::move(close_);
    close_.reset();
    std::move(irp).complete(Status::Ok);  // `this` may be gone now
  });
}

Result<AgentId> Gsi::State::add_agent(GsiAgent agent, std::string& reason) {
  mad::AgentKey key{agent.mgmt_class, agent.class_version, agent.oui, agent.methods, agent.port};
  if (agent.class_port_info) key.methods.add(mad::method::kGet);
  if (!key.methods.is_empty() && !agent.on_message) {
    reason = "an agent that takes requests needs a callback for them";
    return Status::InvalidParameter;
  }
  const auto id = table_.add(key, agent.name, reason);
  if (!id) return id.error();
  const bool hears = static_cast<bool>(agent.on_port);
  agents_[*id] = std::make_shared<const GsiAgent>(std::move(agent));
  if (!hears) return *id;
  for (const GsiPort& port : ports()) {
    if (!port.is_open) continue;
    later(*id, [this, agent_id = *id, event = GsiPortEvent{port.port, GsiPortChange::Opened}] {
      find_agent(agent_id)->on_port(event);
    });
  }
  return *id;
}

void Gsi::State::remove_agent(AgentId agent) {
  if (agents_.erase(agent) == 0) return;
  table_.remove(agent);
  cancel_transfers_if([agent](const Transfer& transfer) { return transfer.agent == agent; },
                      Status::Ok, "");
  for (const mad::TransactionId id : transactions_.end_all(agent)) {
    if (requests_.at(id).irp != nullptr) {
      give_up(id, Status::Cancelled, "its agent was removed");
    } else {
      (void)take_request(id);
    }
  }
  arm_timer();
}

Gsi::State::AgentRef Gsi::State::find_agent(AgentId agent) const {
  const auto found = agents_.find(agent);
  return found == agents_.end() ? nullptr : found->second;
}

void Gsi::State::later(AgentId agent, std::function<void()> work, mad::TransactionId request) {
  later_.push_back({agent, request, std::move(work)});
  if (later_timer_ == nullptr) {
    later_timer_ = system_.executor.at(system_.executor.now(), [this] { run_later(); });
  }
}

void Gsi::State::run_later() {
  later_timer_.reset();
  for (std::size_t left = later_.size(); left > 0 && !later_.empty(); --left) {
    const Later next = std::move(later_.front());
    later_.pop_front();
    if (agents_.contains(next.agent)) next.work();
  }
}

void Gsi::State::on_port(const GsiPortEvent& event) {
  if (closed_) return;
  if (event.change == GsiPortChange::Closed) fail_all_of(event.port);
  for (const auto& [id, agent] : agents_) {
    if (!agent->on_port || agent->port.value_or(event.port) != event.port) continue;
    later(id, [this, agent_id = id, event] {
      const AgentRef hears = find_agent(agent_id);
      hears->on_port(event);
    });
  }
}

}  // namespace ib::services
