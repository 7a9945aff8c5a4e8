// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes of a port [IBA1 11.2.1.2], as verbs and agents tell them.
#pragma once

#include "fabric/port.h"
#include "verbs/control.h"

namespace ib::fabric {

// VLCap [IBA1 14.2.5.6] of an InfiniBand port: VL0 to VL7.
inline constexpr std::uint8_t kDataLanes = 4;

verbs::control::PortAttr port_attributes(const Port& port);

}  // namespace ib::fabric
