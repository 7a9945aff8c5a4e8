// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/health/examine.h"

#include "fabric/health/credit_loops.h"
#include "fabric/health/element_checks.h"
#include "fabric/health/ways.h"

#include <algorithm>

namespace ib::fabric::health {

Report examine(const Survey& survey) {
  Report report;
  for (const SurveyElement& element : survey.elements) {
    if (element.is_gone != 0) continue;
    ++(element.is_switch != 0 ? report.counts.switches : report.counts.adapters);
  }
  for (const SurveyPort& port : survey.ports) {
    if (port.is_ethernet != 0) ++report.counts.ethernet_ports;
    const bool is_loose = port.peer == kNoIndex && survey.element_of(port).is_switch == 0;
    if (is_loose && port.is_ethernet == 0 && survey.has_ideal_network) ++report.counts.ideal_ports;
  }
  examine_managers(survey, report);
  examine_guids(survey, report);
  examine_lids(survey, report);
  examine_ports(survey, report);
  const Channels channels = examine_ways(survey, report);
  examine_links(survey, report);
  examine_credit_loops(survey, channels, report);
  examine_partitions(survey, report);
  std::ranges::stable_sort(report.findings, {}, &Finding::severity);
  return report;
}

}  // namespace ib::fabric::health
