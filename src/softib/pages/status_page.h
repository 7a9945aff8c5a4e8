// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a fabric as a page for people.
#pragma once

#include "softib/pages/fabric_state.h"

#include <string>

namespace ib::softib {

// Fields that this softibd does not report are left out.
std::string status_page(const std::string& fabric, const Json& state);

// "node1/softib0/1", as the configuration file names ports.
std::string peer_name(const Json& peer);

std::string bytes_text(std::uint64_t bytes);                 // "1.5 GiB"
std::string counted(std::uint64_t count, const char* what);  // "1 event", "2 events"

}  // namespace ib::softib
