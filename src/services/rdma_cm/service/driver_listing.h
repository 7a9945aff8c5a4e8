// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of kernel clients in `softib connections`.
#pragma once

#include "services/cm/cm_device.h"
#include "services/rdma_cm/service/listing.h"

#include <vector>

namespace ib::services::rdma_cm {

// Adds their listeners, connections and exchanges as they are `now`.
void list_drivers(const CmDevice& device, Instant now, std::vector<Listing>& all);

}  // namespace ib::services::rdma_cm
