// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib status: the state of the fabric.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/status_page.h"

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
  print_page([&] { return page(client, options); }, options.watch, options.json);
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
