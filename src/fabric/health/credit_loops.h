// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Credit loops: channels between switches of which each waits for room in the next one, in a
// circle. Packets on adapters of hardware can wait there for each other without end, if all go on
// the same virtual lane; softib queues no packets. Of each strongly connected part of the channels'
// graph a shortest circle is told.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/survey.h"
#include "fabric/health/ways.h"

namespace ib::fabric::health {

void examine_credit_loops(const Survey& survey, const Channels& channels, Report& report);

}  // namespace ib::fabric::health
