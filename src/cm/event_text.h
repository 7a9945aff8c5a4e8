// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events and errors of librdmacm in words: one table for each, by the numbers that programs print.
#pragma once

#include "cm/reject_reason.h"

#include <cstdint>
#include <span>

namespace ib::cm {

// RDMA_CM_EVENT_ADDR_RESOLVED (0) and all others; `name` is that of rdma/rdma_cma.h.
std::span<const NumberedText> rdma_events();
// Errors that calls return in errno and events have as a negative status; `name`: "ETIMEDOUT".
std::span<const NumberedText> rdma_errors();

}  // namespace ib::cm
