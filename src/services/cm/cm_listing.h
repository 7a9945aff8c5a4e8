// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rows of a kernel client in `softib connections`.
#pragma once

#include "services/cm/cm_objects.h"
#include "services/rdma_cm/words/listing.h"

#include <string>

namespace ib::services {

// One object of the client `driver` as it is `now`.
rdma_cm::Listing listing_of(const CmObject& object, const HcaCm& manager, const std::string& driver,
                            Instant now);

}  // namespace ib::services
