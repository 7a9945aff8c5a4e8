// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet management agent of an element of the fabric: an SMP that has come to it becomes an
// answer, and a Set is carried out.
//
// Thread rule: as the fabric's.
#pragma once

#include "base/time.h"
#include "fabric/model.h"
#include "fabric/port_states.h"
#include "mad/agent.h"

namespace ib::fabric {

// `at`: the port by which it came. `response` is written if the verdict is Answered; a Set that was
// carried out is Answered, too. Leases of M_Keys run by `now` [IBA1 14.2.4.1].
mad::Handled handle_smp(Fabric& fabric, Port& at, const mad::Mad& request, Instant now,
                        mad::Mad& response, PortChanges& changes);

}  // namespace ib::fabric
