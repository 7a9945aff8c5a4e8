// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiAgents: the agents of Gsi, and the calls of their callbacks that wait for the executor.
#pragma once

#include "mad/agent_table.h"
#include "mad/transactions.h"
#include "platform/executor.h"
#include "services/gsi/gsi.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace ib::services {

class GsiAgents {
 public:
  using Ref = std::shared_ptr<const GsiAgent>;  // it may be removed by its own callback

  explicit GsiAgents(platform::Executor& executor) : executor_(executor) {}

  // Gsi::add_agent(), without the ports that are open already.
  Result<AgentId> add(GsiAgent agent, std::string& reason);
  // Returns false if it was removed before.
  bool remove(AgentId agent);
  // Both return nullptr if it has been removed.
  Ref find(AgentId agent) const;
  const mad::AgentKey* find_key(AgentId agent) const { return table_.find(agent); }
  mad::AgentTable::Match match(std::uint32_t port, std::span<const std::byte> mad) const {
    return table_.match(port, mad);
  }

  // Runs `work` from the executor, unless the agent has been removed, or the request been
  // cancelled, by then.
  void call_later(AgentId agent, std::function<void()> work, mad::TransactionId request = 0);
  void cancel_calls_of(mad::TransactionId request);
  // Runs all that wait now.
  void run_calls();

  // Later, as all calls: to one agent, or to those that take what comes to the port.
  void tell(AgentId agent, const GsiPortEvent& event);
  void tell_all(const GsiPortEvent& event);

 private:
  struct Call {
    AgentId agent = 0;
    mad::TransactionId request = 0;
    std::function<void()> work;
  };

  platform::Executor& executor_;
  mad::AgentTable table_;
  std::map<AgentId, Ref> agents_;
  std::deque<Call> calls_;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::services
