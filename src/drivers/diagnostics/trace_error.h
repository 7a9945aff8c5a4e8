// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A process reports a work request that failed; the trace gets a sentence about it (explain.h).
#pragma once

#include "drivers/soft_hca/core.h"

namespace ib::drivers {

void trace_error(Core& core, Session& session, const control::TraceErrorIn& in, io::IrpRef irp);

}  // namespace ib::drivers
