// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client of subnet administration and the requesters that tests make in a ServicesWorld.
#pragma once

#include "sa/records/header.h"
#include "services/sa/gsi_sa_client.h"
#include "services/sa/sa_service.h"
#include "services_world.h"

#include <memory>
#include <string>

namespace ib::services::test {

// The client that softib's services share.
inline std::unique_ptr<SaClient> make_sa_client(ServicesWorld& w, SaService& administrator) {
  std::string reason;
  auto made =
      GsiSaClient::create(*w.gsi, administrator, w.bench.fabric, w.bench.executor, {}, reason);
  EXPECT_TRUE(made.has_value()) << reason;
  return *std::move(made);
}

// An agent that sends requests and takes none, such as saquery.
inline AgentId add_sa_requester(ServicesWorld& w) {
  std::string reason;
  GsiAgent agent;
  agent.name = "requester";
  agent.mgmt_class = sa::kMgmtClass;
  agent.class_version = sa::kClassVersion;
  const auto id = w.gsi->add_agent(agent, reason);
  EXPECT_TRUE(id.has_value()) << reason;
  return *id;
}

}  // namespace ib::services::test
