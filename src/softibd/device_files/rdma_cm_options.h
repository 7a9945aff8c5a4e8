// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include "drivers/soft_hca/core.h"
#include "services/rdma_cm/service/service.h"

#include <cstdint>
#include <functional>

namespace ib::softib {

// The options of the rdma_cm service that concern the drivers: owners of queue pairs, lines in the
// trace.
services::rdma_cm::ServiceOptions rdma_cm_options(platform::Executor& executor, drivers::Core& core,
                                                  std::function<std::uint32_t()> random);

}  // namespace ib::softib
