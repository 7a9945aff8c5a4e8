// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of elements, ports, cables and partitions, one by one and side by side.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/survey.h"

namespace ib::fabric::health {

void examine_guids(const Survey& survey, Report& report);     // two elements or ports have one
void examine_lids(const Survey& survey, Report& report);      // two ports of a subnet have one
void examine_managers(const Survey& survey, Report& report);  // subnets without a manager
void examine_ports(const Survey& survey, Report& report);     // those that are not Active
void examine_links(const Survey& survey, Report& report);     // slower than both ends could be
// Ports of a subnet whose programs can have no partition in common.
void examine_partitions(const Survey& survey, Report& report);

}  // namespace ib::fabric::health
