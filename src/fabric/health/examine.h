// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The examination of a subnet: whether data gets from everywhere to everywhere, and what else may
// be wrong.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/picture.h"

namespace ib::fabric::health {

// Faults come before warnings. The picture has its tables.
Report examine(const Picture& picture);

}  // namespace ib::fabric::health
