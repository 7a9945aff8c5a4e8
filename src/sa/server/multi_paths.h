// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GetMulti(MultiPathRecord) [IBA1 15.2.5]: paths between any of several sources and any of several
// destinations. Pairs of ports come in an order in which those that share no port follow each
// other, so the first paths are as independent as the ports are.
#pragma once

#include "sa/server/request.h"

#include <cstdint>

namespace ib::sa {

// Adds the paths that the requester may see. Returns a status of sa_status.
std::uint16_t find_multi_paths(const Topology& topology, const Requester& requester,
                               const Request& request, RecordList& paths);

}  // namespace ib::sa
