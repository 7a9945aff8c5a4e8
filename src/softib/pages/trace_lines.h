// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The trace of a running fabric, as numbered lines.
#pragma once

#include "softib/pages/control_client.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

// NOLINTNEXTLINE(bugprone-exception-escape): of nlohmann::json
struct TraceLine {
  std::uint64_t number = 0;
  std::string text;
  bool is_step = false;           // of PnP or power
  nlohmann::ordered_json fields;  // all fields of softibd, with "time" and "last_time"
};

// One JSON object a line (Trace::json_after); other lines are left out. `start`: the time of day at
// which the monotonic clock was 0.
std::vector<TraceLine> parse_trace(std::string_view text,
                                   std::chrono::system_clock::time_point start);

// "12:34:56.789  text", and the count of repetitions. Local time. Further lines of at most `width`
// columns are indented; 0: one line.
std::string shown(const TraceLine& line, std::size_t width = 0);

// Lines with a number greater than `after`. Throws CliError(Daemon).
std::vector<TraceLine> read_trace(ControlClient& client, std::uint64_t after);

}  // namespace ib::softib
