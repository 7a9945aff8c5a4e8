// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state for people and tools, as JSON (`softib status`).
#pragma once

#include "drivers/soft_hca/core.h"
#include "verbs/control_status.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ib::drivers {

// Keys are stable; docs/status_json.md lists them. Numbers of messages and bytes are those of the
// memory plane. Made from the records; from device memory only counters and states come.
// With `part`, which is the input of Code::Status, it describes one node or none.
nlohmann::ordered_json status(Core& core, const control::StatusIn* part = nullptr);
std::string status_json(Core& core, const control::StatusIn* part = nullptr);
// A line end after it; names of programs may be anything: what is not UTF-8 is replaced.
std::string json_text(const nlohmann::ordered_json& json);

// "active"; for JSON.
const char* port_state_name(verbs::PortState state);

}  // namespace ib::drivers
