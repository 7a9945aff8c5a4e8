// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The lines of softibd's log about its crash (linux/server/crash_report.h).
#pragma once

#include <cstddef>
#include <string>

namespace ib::softib {

// Returns the reason, with the driver that is to blame, in words; empty if the softibd that wrote
// the last lines of the log after byte `from` has not crashed, as far as it shows.
std::string last_death(const std::string& log, std::size_t from = 0);

}  // namespace ib::softib
