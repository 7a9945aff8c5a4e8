// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests about softib's own subnet managers (verbs/control_sm.h).
#pragma once

#include "services/sm/subnet_managers.h"
#include "verbs/control_sm.h"

#include <nlohmann/json.hpp>

#include <string>

namespace ib::softib {

// InvalidParameter: `reason` says of what.
Status carry_out(const verbs::control::SmIn& in, services::SubnetManagers& managers,
                 std::string& reason);
// As docs/status_json.md has it.
nlohmann::ordered_json managers_json(const fabric::Fabric& fabric,
                                     const services::SubnetManagers& managers);

}  // namespace ib::softib
