// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The trace of a running fabric, as numbered lines.
#pragma once

#include "softib/control_client.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

struct TraceLine {
  std::uint64_t number = 0;
  std::string text;
};

// "<number> <text>" a line; lines of another form are left out.
std::vector<TraceLine> parse_trace(std::string_view text);

// Lines with a number greater than `after`. Throws CliError(Daemon).
std::vector<TraceLine> read_trace(ControlClient& client, std::uint64_t after);

}  // namespace ib::softib
