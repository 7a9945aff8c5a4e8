// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib trace: the lines in which softibd says what went wrong or changed.
#include "softib/command.h"
#include "softib/fabric_state.h"
#include "softib/trace_lines.h"
#include "softib/usage.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

struct TraceOptions {
  std::string fabric;
  std::size_t count = 0;
  bool follow = false;
};

void show(const std::vector<TraceLine>& lines, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < lines.size(); ++i) {
    text += fmt::format("{:>6} {}\n", lines[i].number, lines[i].text);
  }
  if (!text.empty()) print(text);
}

void trace(const TraceOptions& options) {
  ControlClient client = connect_up(options.fabric);
  std::vector<TraceLine> lines = read_trace(client, 0);
  const bool all = options.count == 0 || options.count > lines.size();
  show(lines, all ? 0 : lines.size() - options.count);
  std::uint64_t seen = lines.empty() ? 0 : lines.back().number;
  while (options.follow) {
    // There is no request that waits for a line; five a second is soon enough for a reader.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lines = read_trace(client, seen);
    if (lines.empty()) continue;
    if (lines.front().number > seen + 1) {
      print(fmt::format("       ... {} lines lost ...\n", lines.front().number - seen - 1));
    }
    show(lines, 0);
    seen = lines.back().number;
  }
}

}  // namespace

void add_trace(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("trace", "what went wrong or changed, line by line");
  auto options = std::make_shared<TraceOptions>();
  add_fabric_option(*command, options->fabric);
  command->add_option("-l,-n,--lines", options->count, "only the last N lines; 0: all there are")
      ->check(whole_number(0, 1000000))
      ->option_text("N [0]");
  command->add_flag("-F,--follow", options->follow,
                    "stay and show new lines, until Ctrl-C or `softib down`");
  command->footer(
      "Examples:\n"
      "  softib trace\n"
      "  softib trace --follow");
  command->callback(
      [options] { until_down(options->fabric, options->follow, [&] { trace(*options); }); });
}

}  // namespace ib::softib
