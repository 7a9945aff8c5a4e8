// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path of a connected queue pair: who is at the other end, and automatic path migration
// [IBA1 17.2.8].
#pragma once

#include "drivers/soft_hca/core.h"

namespace ib::drivers {

// Returns the queue pair that this one is connected to if it is connected back, else nullptr.
Qp* connected_peer(Core& core, const Qp& qp);

// Copies the fields of the path and the connection that posters need into device memory.
void store_path(Core& core, const Qp& qp);
// Resolves the addresses that no port had once more, since there may be new ports.
void resolve_flows(Core& core);
// Resolves all connections whose peer's address has become that of another port, or of none.
void resolve_all_flows(Core& core);

// Rearm: Armed as soon as both ends are. Call after qp.attr.mig_state became Rearm.
void arm_migration(Core& core, Qp& qp);
// Both ends go to their alternate paths, with a PathMig event each, if they are Armed.
void migrate(Core& core, Qp& qp);

}  // namespace ib::drivers
