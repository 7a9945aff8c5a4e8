// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The facts that the agents of a port answer from (mad/agent.h), out of the graph of the fabric: of
// channel adapters and switches alike.
#pragma once

#include "fabric/graph.h"
#include "mad/agent.h"

#include <string_view>

namespace ib::fabric {

// The facts borrow the description, and the P_Keys of the port.
mad::NodeFacts node_facts(const Graph& graph, const Element& element, std::string_view description);
mad::PortFacts port_facts(const Port& port);

}  // namespace ib::fabric
