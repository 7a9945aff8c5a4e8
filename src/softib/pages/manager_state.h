// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib's own subnet managers (verbs/control_sm.h), as commands get their state.
#pragma once

#include "softib/pages/control_client.h"
#include "verbs/control_sm.h"

#include <cstdint>
#include <string>

namespace ib::softib {

// JSON (docs/status_json.md). Throws CliError(Daemon), also if softib has no managers there.
std::string ask_managers(ControlClient& client, verbs::control::SmAction action,
                         std::uint32_t priority = 0);

// After a change of links: waits until the managers have done what it needs, but for a few seconds
// at most. So a port that has come up is active when the command ends, as far as it depends on
// them.
void let_managers_follow(ControlClient& client);

}  // namespace ib::softib
