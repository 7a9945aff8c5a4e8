// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ElementAgents: the agents of the elements of the fabric (performance and device management) at
// the ports that Gsi has opened.
//
// Thread rule: as Gsi's.
#pragma once

#include "base/result.h"
#include "fabric/management/gmp_agents.h"
#include "fabric/model.h"
#include "services/gsi/gsi.h"

#include <memory>
#include <string>
#include <vector>

namespace ib::services {

class ElementAgents {
 public:
  // Errors as Gsi::add_agent(). Borrows all until it is destroyed.
  static Result<std::unique_ptr<ElementAgents>> create(Gsi& gsi, const fabric::Fabric& fabric,
                                                       fabric::GmpAgents& agents,
                                                       std::string& reason);
  ElementAgents(const ElementAgents&) = delete;
  ElementAgents& operator=(const ElementAgents&) = delete;
  ~ElementAgents();

 private:
  ElementAgents(Gsi& gsi, const fabric::Fabric& fabric, fabric::GmpAgents& agents)
      : gsi_(gsi), fabric_(fabric), agents_(agents) {}
  Status add(const char* name, std::uint8_t mgmt_class, std::string& reason);

  Gsi& gsi_;
  const fabric::Fabric& fabric_;
  fabric::GmpAgents& agents_;
  std::vector<AgentId> ids_;
};

}  // namespace ib::services
