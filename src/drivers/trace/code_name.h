// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names for people: of requests, of verbs.
#pragma once

#include "verbs/control.h"

#include <cstdint>

namespace ib::drivers {

const char* code_name(std::uint32_t code);        // "CreateQp"; never null
const char* verb_name(std::uint32_t code);        // "ibv_create_qp"; without a verb, as code_name()
const char* opcode_name(verbs::WrOpcode opcode);  // "RDMA_WRITE"

}  // namespace ib::drivers
