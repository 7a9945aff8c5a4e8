// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device management agent of an element [IBA1 16.3]: of an I/O unit without controllers.
#pragma once

#include "mad/header.h"

namespace ib::fabric {

// Answers a Get or a Set of the class and version.
mad::Mad answer_device_management(const mad::Mad& request);

}  // namespace ib::fabric
