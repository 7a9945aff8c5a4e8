// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects of each program as JSON, for `softib resources`: queue pairs with their peers, how
// full queues are, whether they are armed, keys, and channels with events that nobody has read.
#pragma once

#include "drivers/soft_hca/core.h"

#include <string>

namespace ib::drivers {

// Keys are stable; docs/status_json.md lists them. Counters are read from device memory while
// programs work, so two of them may be of slightly different times.
std::string resources_json(Core& core);

}  // namespace ib::drivers
