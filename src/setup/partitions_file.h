// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `--partitions`: a file in the syntax of OpenSM's partitions.conf (sm/partitions/partitions.h).
#pragma once

#include "base/result.h"
#include "sm/partitions/partitions.h"

#include <string>

namespace ib::softib {

// Passive level. NotFound: it cannot be read; Malformed: `reason` has the file, line and column.
Result<sm::PartitionList> read_partitions(const std::string& path, std::string& reason);

}  // namespace ib::softib
