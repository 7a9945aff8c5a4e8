// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners and connections as `softib status --json` has them (docs/status_json.md: rdma_cm[]).
#pragma once

#include "services/rdma_cm/words/listing.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace ib::softib {

nlohmann::ordered_json connections_json(const fabric::Fabric& fabric,
                                        const std::vector<services::rdma_cm::Listing>& all);

}  // namespace ib::softib
