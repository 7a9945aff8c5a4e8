// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Carries out a Set of a subnet manager [IBA1 14.2.5]. Its values have been checked
// (mad::check_set).
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"
#include "fabric/port_states.h"
#include "mad/smp.h"

namespace ib::fabric {

// `at`: the port by which the SMP came to its element.
void apply_set(Fabric& fabric, const Port& at, const mad::Smp& smp, PortChanges& changes);

}  // namespace ib::fabric
