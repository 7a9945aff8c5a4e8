// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The answers to the commands that librdmacm sends after an event, so that they can go with it.
#pragma once

#include "services/rdma_cm/service/ids.h"

#include <cstdint>
#include <vector>

namespace ib::services::rdma_cm {

// A list of verbs::control::RdmaCmAhead, not longer than kMostRdmaCmAhead; commands that would fail
// are not in it.
std::vector<std::uint8_t> answers_ahead(const fabric::Fabric& fabric, const Id& id,
                                        ucma::Event event);

}  // namespace ib::services::rdma_cm
