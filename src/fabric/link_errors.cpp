// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/link_errors.h"

#include <algorithm>
#include <limits>

namespace ib::fabric {
namespace {

void add(std::uint32_t& counter, std::uint32_t more) {
  counter += std::min(more, std::numeric_limits<std::uint32_t>::max() - counter);
}

// How often a run of errors is longer than the threshold; the count begins again each time.
std::uint32_t crossings(std::uint32_t errors, unsigned threshold) {
  return errors / (threshold + 1);
}

}  // namespace

void add_errors(Fabric& fabric, Port& port, const LinkErrors& errors, PortChanges& changes) {
  PortCounters& counters = port.counters;
  add(counters.symbol_errors, errors.symbol);
  add(counters.link_error_recovery, errors.recovery);
  if (Port* peer = fabric.graph().peer_of(port); peer != nullptr) {
    add(peer->counters.link_error_recovery, errors.recovery);
  }
  add(counters.remote_physical_errors, errors.remote);
  add(counters.transmit_discards, errors.discards);
  add(counters.inactive_discards, errors.discards);
  add(counters.receive_errors, errors.physical);
  add(counters.local_physical_errors, errors.physical);
  add(counters.receive_errors, errors.overrun);
  add(counters.buffer_overruns, errors.overrun);

  const std::uint32_t integrity = crossings(errors.physical, port.settings.error_thresholds >> 4);
  const std::uint32_t overruns = crossings(errors.overrun, port.settings.error_thresholds & 15);
  add(counters.local_link_integrity_errors, integrity);
  add(counters.buffer_overrun_errors, overruns);
  const std::uint32_t what = (integrity != 0 ? change::kLinkIntegrity : 0) |
                             (overruns != 0 ? change::kBufferOverrun : 0) |
                             (errors.watchdog != 0 ? change::kFlowControl : 0);
  if (what != 0) changes.push_back({fabric.graph().index_of(port), what, verbs::PortState::Nop});
}

}  // namespace ib::fabric
