// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/health/examine.h"

#include "fabric/health/credit_loops.h"
#include "fabric/health/element_checks.h"
#include "fabric/health/ways.h"

#include <algorithm>

namespace ib::fabric::health {

Report examine(const Picture& picture) {
  Report report;
  for (const PictureElement& element : picture.elements) {
    if (element.is_gone != 0) continue;
    ++(element.is_switch != 0 ? report.counts.switches : report.counts.adapters);
  }
  for (const PicturePort& port : picture.ports) {
    if (port.is_ethernet != 0) ++report.counts.ethernet_ports;
    const bool is_loose = port.peer == kNoIndex && picture.element_of(port).is_switch == 0;
    if (is_loose && port.is_ethernet == 0 && picture.has_ideal_network) ++report.counts.ideal_ports;
  }
  examine_managers(picture, report);
  examine_guids(picture, report);
  examine_lids(picture, report);
  examine_ports(picture, report);
  const Channels channels = examine_ways(picture, report);
  examine_links(picture, report);
  examine_credit_loops(picture, channels, report);
  examine_partitions(picture, report);
  std::ranges::stable_sort(report.findings, {}, &Finding::severity);
  return report;
}

}  // namespace ib::fabric::health
