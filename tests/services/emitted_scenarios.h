// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Scenarios that together make softib send every kind of MAD (emitted_rows.h). Each is a world of
// its own; it appends all MADs that left queue pairs 1 of softib to `log`.
#pragma once

#include "mad/header.h"

#include <vector>

namespace ib::services::test {

// Subnet administration and connections between two nodes, each with softib's services.
void run_services(std::vector<mad::Mad>& log);
// A peer requests everything: methods, attributes and classes that there are not, too.
void run_refusals(std::vector<mad::Mad>& log);
// Messages of several packets from a peer, as requests and as answers, with every mistake.
void run_transfers(std::vector<mad::Mad>& log);

}  // namespace ib::services::test
