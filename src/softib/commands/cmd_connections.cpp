// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib connections: listeners and connections of the fabric.
#include "softib/commands/command.h"
#include "softib/pages/connections_page.h"
#include "softib/pages/fabric_state.h"

namespace ib::softib {
namespace {

struct ConnectionsOptions {
  std::string fabric;
  ConnectionsShown shown = ConnectionsShown::Usual;
  bool listen = false;
  bool all = false;
  bool json = false;
  bool watch = false;
};

std::string page(ControlClient& client, const ConnectionsOptions& options) {
  const Json chosen =
      chosen_connections(list_of(ask_state_without_nodes(client), "rdma_cm"), options.shown);
  if (options.json) return chosen.dump(options.watch ? -1 : 2) + "\n";
  return connections_page(options.fabric, chosen);
}

void connections(const ConnectionsOptions& options) {
  ControlClient client = connect_up(options.fabric);
  print_page([&] { return page(client, options); }, options.watch, options.json);
}

}  // namespace

void add_connections(CLI::App& app, Context&) {
  Command command(app, "connections", "listeners and connections, with both ends");
  auto options = std::make_shared<ConnectionsOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("-l,--listen", options->listen, "listeners only");
  command.flag("-a,--all", options->all,
               "also ids that are idle, bound, resolved, or over and not destroyed");
  command.flag("--json", options->json,
               "for programs (docs/status_json.md); with --watch one array a line");
  command.flag("-w,--watch", options->watch, "again every second, until Ctrl-C or `softib down`");
  command.footer(
      "Exit code 5 if the fabric is not up.\n"
      "\nExamples:\n"
      "  softib connections\n"
      "  softib connections --json | jq '.[] | select(.waits_for)'");
  command.callback([options] {
    if (options->listen && options->all) {
      throw CliError(Exit::Usage, "softib connections: --listen and --all exclude each other");
    }
    if (options->listen) options->shown = ConnectionsShown::Listeners;
    if (options->all) options->shown = ConnectionsShown::All;
    until_down(options->fabric, options->watch, [&] { connections(*options); });
  });
}

}  // namespace ib::softib
