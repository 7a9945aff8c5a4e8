// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/link_errors.h"

#include "fabric/saturating_add.h"

namespace ib::fabric {
namespace {

// How often a run of errors is longer than the threshold; the count begins again each time.
std::uint32_t crossings(std::uint32_t errors, unsigned threshold) {
  return errors / (threshold + 1);
}

}  // namespace

void add_errors(Fabric& fabric, Port& port, const LinkErrors& errors, PortChanges& changes) {
  PortCounters& counters = port.counters;
  add_saturating(counters.symbol_errors, errors.symbol);
  add_saturating(counters.link_error_recovery, errors.recovery);
  if (Port* peer = fabric.graph().peer_of(port); peer != nullptr) {
    add_saturating(peer->counters.link_error_recovery, errors.recovery);
  }
  add_saturating(counters.remote_physical_errors, errors.remote);
  add_saturating(counters.transmit_discards, errors.discards);
  add_saturating(counters.inactive_discards, errors.discards);
  add_saturating(counters.receive_errors, errors.physical);
  add_saturating(counters.local_physical_errors, errors.physical);
  add_saturating(counters.receive_errors, errors.overrun);
  add_saturating(counters.buffer_overruns, errors.overrun);

  const std::uint32_t integrity = crossings(errors.physical, port.settings.error_thresholds >> 4);
  const std::uint32_t overruns = crossings(errors.overrun, port.settings.error_thresholds & 15);
  add_saturating(counters.local_link_integrity_errors, integrity);
  add_saturating(counters.buffer_overrun_errors, overruns);
  const std::uint32_t what = (integrity != 0 ? change::kLinkIntegrity : 0) |
                             (overruns != 0 ? change::kBufferOverrun : 0) |
                             (errors.watchdog != 0 ? change::kFlowControl : 0);
  if (what != 0) changes.push_back({fabric.graph().index_of(port), what, verbs::PortState::Nop});
}

}  // namespace ib::fabric
