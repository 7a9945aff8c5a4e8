// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/agents_internal.h"

#include <utility>

namespace ib::services {

Result<AgentId> GsiAgents::add(GsiAgent agent, std::string& reason) {
  mad::AgentKey key{agent.mgmt_class, agent.class_version, agent.oui, agent.methods, agent.port};
  if (agent.class_port_info) key.methods.add(mad::method::kGet);
  if (!key.methods.is_empty() && !agent.on_message) {
    reason = "an agent that takes requests needs a callback for them";
    return Status::InvalidParameter;
  }
  const auto id = table_.add(key, agent.name, reason);
  if (!id) return id.error();
  agents_[*id] = std::make_shared<const GsiAgent>(std::move(agent));
  return *id;
}

bool GsiAgents::remove(AgentId agent) {
  if (agents_.erase(agent) == 0) return false;
  table_.remove(agent);
  return true;
}

GsiAgents::Ref GsiAgents::find(AgentId agent) const {
  const auto found = agents_.find(agent);
  return found == agents_.end() ? nullptr : found->second;
}

void GsiAgents::call_later(AgentId agent, std::function<void()> work, mad::TransactionId request) {
  calls_.push_back({agent, request, std::move(work)});
  if (timer_ == nullptr) {
    timer_ = executor_.at(executor_.now(), [this] { run_calls(); });
  }
}

void GsiAgents::cancel_calls_of(mad::TransactionId request) {
  std::erase_if(calls_, [request](const Call& each) { return each.request == request; });
}

void GsiAgents::run_calls() {
  timer_.reset();
  for (std::size_t left = calls_.size(); left > 0 && !calls_.empty(); --left) {
    const Call next = std::move(calls_.front());
    calls_.pop_front();
    if (agents_.contains(next.agent)) next.work();
  }
}

void GsiAgents::tell(AgentId agent, const GsiPortEvent& event) {
  call_later(agent, [this, agent, event] {
    const Ref hears = find(agent);
    hears->on_port(event);
  });
}

void GsiAgents::tell_all(const GsiPortEvent& event) {
  for (const auto& [id, agent] : agents_) {
    if (!agent->on_port || agent->port.value_or(event.port) != event.port) continue;
    tell(id, event);
  }
}

}  // namespace ib::services
