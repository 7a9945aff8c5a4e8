// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects that a process leaves to softibd when it closes an HCA or ends, and those that
// softibd itself has left at its end, in words: for the verifier (docs/design/0007).
#pragma once

#include "drivers/soft_hca/core.h"

#include <string>
#include <vector>

namespace ib::drivers {

// A line for each open HCA of the process (`only`: this one) in which objects are left.
std::vector<std::string> leftovers(Core& core, const Session& session, const HcaFile* only);

// Once every connection has ended; empty: nothing is left. Teardowns take a moment.
std::vector<std::string> leftovers_at_end(Core& core);

}  // namespace ib::drivers
