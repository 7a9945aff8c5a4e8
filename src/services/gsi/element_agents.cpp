// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/element_agents.h"

#include "mad/mgmt_class.h"
#include "services/gsi/messages_internal.h"

#include <optional>

namespace ib::services {

Result<std::unique_ptr<ElementAgents>> ElementAgents::create(Gsi& gsi, const fabric::Fabric& fabric,
                                                             fabric::GmpAgents& agents,
                                                             std::string& reason) {
  std::unique_ptr<ElementAgents> self(new ElementAgents(gsi, fabric, agents));
  IB_CHECK(self->add("performance management", mad::mgmt_class::kPerf, reason));
  IB_CHECK(self->add("device management", mad::mgmt_class::kDevMgt, reason));
  return self;
}

ElementAgents::~ElementAgents() {
  for (const AgentId id : ids_) gsi_.remove_agent(id);
}

Status ElementAgents::add(const char* name, std::uint8_t mgmt_class, std::string& reason) {
  GsiAgent agent;
  agent.name = name;
  agent.mgmt_class = mgmt_class;
  agent.methods = {mad::method::kGet, mad::method::kSet};
  const std::size_t place = ids_.size();
  agent.on_message = [this, place](const GsiMessage& message) {
    const fabric::Port* port = fabric_.graph().port(message.from.port);
    if (port == nullptr || message.bytes.size() > mad::kMadSize) return;
    const std::optional<mad::Mad> answer = agents_.answer(*port, first_packet(message.bytes));
    // A requester that gets no answer repeats its request.
    if (answer) (void)gsi_.respond(ids_[place], message.from, *answer);
  };
  const Result<AgentId> added = gsi_.add_agent(std::move(agent), reason);
  if (!added) return added.error();
  ids_.push_back(*added);
  return Status::Ok;
}

}  // namespace ib::services
