// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Errors of a cable, as its receiving end counts them [IBA1 7.12, 16.1.3.5], and what its agent has
// to tell a subnet manager when they pass a threshold [IBA1 14.2.5.6, ErrorThresholds].
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"
#include "fabric/port_states.h"

#include <cstdint>

namespace ib::fabric {

struct LinkErrors {
  std::uint32_t symbol = 0;
  std::uint32_t recovery = 0;  // of the link, which both ends see
  std::uint32_t physical = 0;  // bad packets in a row
  std::uint32_t overrun = 0;   // flow control periods in a row with an overrun of the buffer
  std::uint32_t watchdog = 0;  // times that flow control was silent for too long
  std::uint32_t remote = 0;    // packets that came marked as bad
  std::uint32_t discards = 0;  // of packets that were to be sent, as if the port were not active
};

// Each crossing of a threshold counts, and one change tells of all of them.
void add_errors(Fabric& fabric, Port& port, const LinkErrors& errors, PortChanges& changes);

}  // namespace ib::fabric
