// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests about the subnet (verbs/control_topology.h), and files that are written of the answers.
#pragma once

#include "softib/pages/control_client.h"
#include "verbs/control_topology.h"

#include <string>

namespace ib::softib {

std::string ask_topology(ControlClient& client, verbs::control::TopologyForm form);
// JSON. The ends are nodes by name or number, or LIDs: "lid:5".
std::string ask_path(ControlClient& client, const std::string& from, const std::string& to,
                     const std::string& fabric);

// "-" is standard output. Throws CliError(Failed) if it cannot be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace ib::softib
