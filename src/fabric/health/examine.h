// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The examination of a subnet: whether data gets from everywhere to everywhere, and what else may
// be wrong.
#pragma once

#include "fabric/health/finding.h"
#include "fabric/health/survey.h"

namespace ib::fabric::health {

// Faults come before warnings. The survey has its tables.
Report examine(const Survey& survey);

}  // namespace ib::fabric::health
