// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests about the subnet (verbs/control_topology.h), and files that are written of the answers.
#pragma once

#include "softib/pages/control_client.h"
#include "softib/pages/fabric_state.h"
#include "verbs/control_topology.h"

#include <string>

namespace ib::softib {

std::string ask_topology(ControlClient& client, verbs::control::TopologyForm form);
// Its form Json, parsed.
Json ask_topology_json(ControlClient& client);
// JSON. The ends are nodes by name or number, or LIDs: "lid:5".
std::string ask_path(ControlClient& client, const std::string& from, const std::string& to,
                     const std::string& fabric);

// Throws CliError(Daemon).
Json parse_answer(const std::string& text);

// A node may be named by its number, as in all commands: "3", "3/softib1" or "3:1" with its name.
std::string with_node_name(ControlClient& client, const std::string& text,
                           const std::string& fabric);

// "-" is standard output. Throws CliError(Failed) if it cannot be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace ib::softib
