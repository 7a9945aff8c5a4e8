// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state for people and tools: counters of ports, and the whole state as JSON (`softib status`).
#pragma once

#include "drivers/soft_hca/core.h"
#include "drivers/sysfs/sysfs.h"
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

PortTotals port_totals(Core& core, const fabric::Hca& hca, const fabric::Port& port);

// "active"; for JSON.
const char* port_state_name(verbs::PortState state);

// For the files in /sys.
class CoreStatus final : public DeviceStatus {
 public:
  explicit CoreStatus(Core& core) : core_(core) {}
  control::CaAttr ca(const fabric::Hca& hca) const override;
  control::PortAttr port(const fabric::Hca& hca, const fabric::Port& port) const override;
  DeviceCounters counters(const fabric::Hca& hca, const fabric::Port& port) const override;

 private:
  Core& core_;
};

}  // namespace ib::drivers
