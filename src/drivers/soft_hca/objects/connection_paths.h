// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path of a connected queue pair: who is at the other end, and automatic path migration
// [IBA1 17.2.8].
#pragma once

#include "drivers/soft_hca/core.h"

#include <cstdint>

namespace ib::drivers {

// Returns the queue pair that this one is connected to if it is connected back, else nullptr.
Qp* connected_peer(Core& core, const Qp& qp);

// Copies the fields of the path and the connection that posters need into device memory.
void store_path(Core& core, Qp& qp);
enum class Resolve : std::uint8_t {
  Missing,  // addresses that no port had, since there may be new ports
  All,      // and those that have become another port's, or no port's
};
// A port has another LID or other P_Keys: its queue pairs send with these from now on.
void follow_port(Core& core, const fabric::Port& port);
// Finds the ports of connected peers once more.
void resolve_flows(Core& core, Resolve which);
// Elements with marks (Graph::mark_forwarding) forward otherwise now: the ways of connections and
// of datagrams that pass them are found once more, and posters see it with their next request. An
// Armed connection whose path breaks migrates, if its alternate path is whole.
void follow_forwarding(Core& core);
// The same a little later, for all marks until then: a subnet manager writes tables by many
// packets. Graph::set_on_marked() calls it.
void follow_forwarding_soon(Core& core);

// Rearm: Armed as soon as both ends are. Call after qp.attr.mig_state became Rearm.
void arm_migration(Core& core, Qp& qp);
// Both ends go to their alternate paths, with a PathMig event each, if they are Armed.
void migrate(Core& core, Qp& qp);

}  // namespace ib::drivers
