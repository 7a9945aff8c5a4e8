// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The traffic of ports: computed from the counters that queue pairs have in device memory
// (docs/design/0022).
#pragma once

#include "drivers/soft_hca/core.h"

#include <vector>

namespace ib::drivers {

// Adds what the queue pair has sent and got since the last time to the totals of its port and of
// the port that it is connected to. To be called before one of these ports changes and before the
// queue pair goes.
void count_traffic(Core& core, Qp& qp);

// The same for all queue pairs, and for datagrams at the ports of switches on their ways.
void settle_traffic(Core& core);

// The same for a queue pair and for that at the other end, whose answers it gets and to which it
// answers: before its connection or its way changes.
void count_connection(Core& core, Qp& qp);

// By port of the fabric, of queue pairs alive and gone.
std::vector<PortTotals> all_port_totals(Core& core);
// Of one port, by its index in device memory.
PortTotals port_totals(Core& core, std::uint32_t port);

// All that a port of any element has counted: in the fabric, and of an HCA by its queue pairs.
fabric::PortCounters port_counters(Core& core, const fabric::Port& port);
// The same, as settle_traffic() has left it: for callers that read many ports.
fabric::PortCounters settled_port_counters(Core& core, const fabric::Port& port);

// The port begins at zero: another HCA has come into the place of one that was pulled out.
void forget_traffic(Core& core, std::uint32_t port);

}  // namespace ib::drivers
