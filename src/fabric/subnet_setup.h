// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnets that no subnet manager works in get from softib: LIDs, forwarding tables by the
// fewest hops, port states. It writes into the fabric without a packet.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"
#include "fabric/port_states.h"
#include "fabric/topology/topology.h"

namespace ib::fabric {

// Of a new fabric: the states of all links, and, where softib manages, the rest; LIDs are those of
// the topology where it has some.
void set_up_subnets(Fabric& fabric, const Topology& topology);

// The last subnet manager of the subnet of a port has gone, or its cables have changed: softib
// manages it from now on, if no other does. LIDs stay, unless another port has the same one.
void take_over(Fabric& fabric, const Port& port, PortChanges& changes);

// Tables of the switches in the subnet of a port are out of date.
void mark_stale(Fabric& fabric, const Port& port);
// The tables of a switch as they are to be read: computed now if they are stale.
const Switch& fresh_tables(const Graph& graph, const Element& element);
Switch& fresh_tables(Graph& graph, const Element& element);
// The tables of a switch that are written to. Those of a subnet manager are not computed first: it
// writes all of them.
Switch& tables_to_set(Fabric& fabric, const Element& element);

}  // namespace ib::fabric
