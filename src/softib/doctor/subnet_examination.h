// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib doctor --subnet`: gets the survey of the fabric from softibd, examines it in this
// process and makes the page.
#pragma once

#include "fabric/health/finding.h"
#include "softib/pages/control_client.h"

#include <string>

namespace ib::softib {

// Throws CliError. A subnet that keeps changing meanwhile is a finding.
fabric::health::Report examine_subnet(ControlClient& client);

std::uint64_t count_faults(const fabric::health::Report& report);
std::string subnet_page(const fabric::health::Report& report);
std::string subnet_json(const fabric::health::Report& report, const std::string& fabric);

}  // namespace ib::softib
