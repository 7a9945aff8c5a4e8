// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ways of data through a subnet by the tables of its switches: from each adapter's port whose
// link is Active to each LID of each other one. Ways to one LID join at switches, so a LID takes a
// step for each switch, however many adapters send to it. Faults are told by the place where they
// are, with the number of ways that end there.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/survey.h"
#include "fabric/switch.h"

#include <vector>

namespace ib::fabric::health {

// By port of a switch: the ports of the next switch by which what has left by this one goes on.
using Channels = std::vector<PortMask>;

// Returns the channels of all ways that arrive.
Channels examine_ways(const Survey& survey, Report& report);

}  // namespace ib::fabric::health
