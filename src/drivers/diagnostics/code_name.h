// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names for people: of requests, of causes of failed work requests, of verbs.
#pragma once

#include "verbs/control.h"

#include <cstdint>

namespace ib::drivers {

const char* code_name(std::uint32_t code);            // "CreateQp"; never null
const char* cause_name(verbs::control::Cause cause);  // "remote_key_unknown": stable, for JSON
const char* opcode_name(verbs::WrOpcode opcode);      // "RDMA_WRITE"
const char* wc_status_name(verbs::WcStatus status);   // "IBV_WC_REM_ACCESS_ERR"

}  // namespace ib::drivers
