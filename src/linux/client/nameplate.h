// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The nameplate of this process (platform/process_name.h).
#pragma once

#include "platform/process_name.h"

namespace ib::os {

// Made at the first call; a forked child makes its own. address 0: that failed.
platform::Nameplate nameplate();

}  // namespace ib::os
