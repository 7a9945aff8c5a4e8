// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib trace: softibd's lines about failures and changes.
#include "softib/commands/command.h"
#include "softib/commands/usage.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/trace_lines.h"
#include "softib/terminal/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

struct TraceOptions {
  std::string fabric;
  std::size_t count = 0;
  bool follow = false;
  bool all = false;
  bool json = false;
};

// Returns the number of lines left out.
std::size_t show(std::vector<TraceLine> lines, std::size_t most, const TraceOptions& options) {
  const std::size_t before = lines.size();
  if (!options.all) std::erase_if(lines, [](const TraceLine& line) { return line.is_step; });
  const std::size_t left_out = before - lines.size();
  const std::size_t width = terminal_size().columns;  // a file or pipe: one line each
  std::string text;
  for (std::size_t i = most == 0 || most > lines.size() ? 0 : lines.size() - most; i < lines.size();
       ++i) {
    text += options.json ? lines[i].fields.dump() + "\n" : shown(lines[i], width) + "\n";
  }
  if (!text.empty()) print(text);
  return left_out;
}

void trace(const TraceOptions& options) {
  ControlClient client = connect_up(options.fabric);
  std::vector<TraceLine> lines = read_trace(client, 0);
  std::uint64_t seen = lines.empty() ? 0 : lines.back().number;
  const std::size_t left_out = show(std::move(lines), options.count, options);
  if (left_out != 0 && !options.follow && !options.json && ::isatty(STDERR_FILENO) == 1) {
    complain(
        fmt::format("{} steps of devices and power are not shown; --all shows them", left_out));
  }
  while (options.follow) {
    // No request waits for a line; five polls a second are enough for a reader.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lines = read_trace(client, seen);
    if (lines.empty()) continue;
    if (lines.front().number > seen + 1 && !options.json) {
      print(fmt::format("... {} lines lost ...\n", lines.front().number - seen - 1));
    }
    seen = lines.back().number;
    show(std::move(lines), 0, options);
  }
}

}  // namespace

void add_trace(CLI::App& app, Context&) {
  Command command(app, "trace", "what went wrong or changed, line by line");
  auto options = std::make_shared<TraceOptions>();
  add_fabric_option(command, options->fabric, "--fabric");  // -f follows, as of `tail`
  command.option("-l,-n,--lines", options->count, "only the last N lines; 0: all there are")
      .whole_number(0, 1000000)
      .placeholder("N [0]");
  command.flag("-f,-F,--follow", options->follow,
               "stay and show new lines, until Ctrl-C or `softib down`");
  command.flag("--all", options->all, "the steps of devices and power too");
  command.flag("--json", options->json, "for programs: one object a line (docs/status_json.md)");
  command.footer(
      "What a program repeats, but for its numbers, is counted with the first of it. On\n"
      "a terminal long lines are wrapped, else each is one line.\n"
      "\nExamples:\n"
      "  softib trace\n"
      "  softib trace --json | jq -r 'select(.kind == \"error\") | .text'\n"
      "  softib trace -f");
  command.callback(
      [options] { until_down(options->fabric, options->follow, [&] { trace(*options); }); });
}

}  // namespace ib::softib
