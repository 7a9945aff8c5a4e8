// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/trace_lines.h"

#include <algorithm>
#include <charconv>

namespace ib::softib {

std::vector<TraceLine> parse_trace(std::string_view text) {
  std::vector<TraceLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    TraceLine parsed;
    const auto [rest, error] =
        std::from_chars(line.data(), line.data() + line.size(), parsed.number);
    if (error != std::errc{} || rest == line.data() + line.size() || *rest != ' ') continue;
    parsed.text.assign(rest + 1, line.data() + line.size());
    lines.push_back(std::move(parsed));
  }
  return lines;
}

std::vector<TraceLine> read_trace(ControlClient& client, std::uint64_t after) {
  verbs::control::TraceReadIn in;
  in.after = after;
  return parse_trace(client.read_text(verbs::control::Code::TraceRead, bytes_of(in)));
}

}  // namespace ib::softib
