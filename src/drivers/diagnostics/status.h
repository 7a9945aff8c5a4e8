// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state for people and tools, as JSON (`softib status`).
#pragma once

#include "drivers/soft_hca/core.h"

#include <string>

namespace ib::drivers {

// Keys are stable; docs/status_json.md lists them. Numbers of messages and bytes are those of the
// memory plane. Made from the records; from device memory only counters and states come.
std::string status_json(Core& core);

// "active"; for JSON.
const char* port_state_name(verbs::PortState state);

}  // namespace ib::drivers
