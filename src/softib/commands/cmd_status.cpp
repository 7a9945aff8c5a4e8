// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib status: the state of the fabric.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/status_page.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

struct StatusOptions {
  std::string fabric;
  bool json = false;
  bool watch = false;
};

std::string page(ControlClient& client, const StatusOptions& options) {
  const Json state = ask_state(client);
  if (options.json) return state.dump(options.watch ? -1 : 2) + "\n";
  return status_page(options.fabric, state);
}

void status(const StatusOptions& options) {
  ControlClient client = connect_up(options.fabric);
  if (!options.watch) {
    print(page(client, options));
    return;
  }
  // On a terminal the page replaces the last one; else, and as JSON, they follow each other.
  const bool in_place = !options.json && ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const std::string text = page(client, options);
    print(in_place ? "\033[H\033[J" + text : text);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void add_status(CLI::App& app, Context&) {
  Command command(app, "status", "nodes, HCAs, ports, programs, what is stuck");
  auto options = std::make_shared<StatusOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs; with --watch one object a line");
  command.flag("-w,--watch", options->watch, "again every second, until Ctrl-C or `softib down`");
  command.footer(
      "Exit code 5 if the fabric is not up.\n"
      "\nExamples:\n"
      "  softib status\n"
      "  softib status --json | jq .clients");
  command.callback(
      [options] { until_down(options->fabric, options->watch, [&] { status(*options); }); });
}

}  // namespace ib::softib
