// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of elements, ports, cables and partitions, one by one and side by side.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/picture.h"

namespace ib::fabric::health {

void examine_guids(const Picture& picture, Report& report);     // two elements or ports have one
void examine_lids(const Picture& picture, Report& report);      // two ports of a subnet have one
void examine_managers(const Picture& picture, Report& report);  // subnets without a manager
void examine_ports(const Picture& picture, Report& report);     // those that are not Active
void examine_links(const Picture& picture, Report& report);     // slower than both ends could be
// Ports of a subnet whose programs can have no partition in common.
void examine_partitions(const Picture& picture, Report& report);

}  // namespace ib::fabric::health
