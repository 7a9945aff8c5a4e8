// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/key_violation.h"

#include "fabric/saturating_add.h"

#include <algorithm>

namespace ib::fabric {
namespace {

// Returns the port at the other end of the cable; nullptr if it is not that of a switch.
Port* switch_at(Graph& graph, const Port& port) {
  Port* peer = graph.peer_of(*graph.port(graph.index_of(port)));
  return peer != nullptr && graph.element_of(*peer).is_switch() ? peer : nullptr;
}

}  // namespace

bool drops_partition(const Port& port, std::uint8_t direction, std::uint32_t pkey) {
  return (port.settings.enforcement & direction) != 0 &&
         std::ranges::none_of(port.pkeys, [&](std::uint16_t own) {
           return own != 0 && ((own ^ pkey) & 0x7fff) == 0;
         });
}

const Port* count_violations(Fabric& fabric, const KeyViolation& violation, std::uint32_t times) {
  Graph& graph = fabric.graph();
  Port& receiver = *graph.port(graph.index_of(*violation.to));
  if (!violation.is_pkey) {
    add_saturating(receiver.settings.q_key_violations, times);
    return &receiver;
  }
  const auto count_at = [&](Port* port, bool may_receive, bool may_send) -> const Port* {
    if (port == nullptr) return nullptr;
    if (may_receive && drops_partition(*port, kEnforcesIn, violation.key)) {
      add_saturating(port->counters.receive_constraint_errors, times);
      return port;
    }
    if (!may_send || !drops_partition(*port, kEnforcesOut, violation.key)) return nullptr;
    add_saturating(port->counters.transmit_constraint_errors, times);
    return port;
  };
  if (violation.at != nullptr) {
    return count_at(graph.port(graph.index_of(*violation.at)), true, true);
  }
  if (const Port* first = count_at(switch_at(graph, *violation.from), true, false)) return first;
  if (const Port* last = count_at(switch_at(graph, receiver), false, true)) return last;
  add_saturating(receiver.settings.p_key_violations, times);
  return &receiver;
}

}  // namespace ib::fabric
