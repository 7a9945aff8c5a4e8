// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib resources: the objects of each program, and what looks like a mistake.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/resources_page.h"

namespace ib::softib {
namespace {

struct ResourcesOptions {
  std::string fabric;
  std::string node;
  ResourcesShown shown;
  bool json = false;
  bool watch = false;
};

std::string page(ControlClient& client, const ResourcesOptions& options) {
  const Json answer =
      Json::parse(client.read_text(verbs::control::Code::Resources), nullptr, false);
  const Json programs = chosen_programs(answer, options.shown);
  if (options.json) return programs.dump(options.watch ? -1 : 2) + "\n";
  return resources_page(options.fabric, programs, options.shown);
}

void resources(ResourcesOptions& options) {
  ControlClient client = connect_up(options.fabric);
  if (!options.node.empty()) options.shown.node = ask_node(client, options.node, options.fabric);
  print_page([&] { return page(client, options); }, options.watch, options.json);
}

}  // namespace

void add_resources(CLI::App& app, Context&) {
  Command command(app, "resources", "queue pairs, CQs, regions and channels of each program");
  auto options = std::make_shared<ResourcesOptions>();
  add_fabric_option(command, options->fabric);
  command.option("program", options->shown.program, "only the program of this name or pid")
      .placeholder("[PROGRAM|PID]");
  command.option("-n,--node", options->node, "only programs of this node: number or name")
      .placeholder("N|NAME");
  command.flag("-a,--all", options->shown.all, "all regions, and the objects of softibd itself");
  command.flag("--json", options->json,
               "for programs (docs/status_json.md); with --watch one array a line");
  command.flag("-w,--watch", options->watch, "again every second, until Ctrl-C or `softib down`");
  command.footer(
      "Each hint names what looks like a mistake and the call that is missing. A hint\n"
      "that comes and goes is a program at work. Events that a program has read and not\n"
      "acknowledged are seen once it waits for them in ibv_destroy_cq or the like.\n"
      "\nExamples:\n"
      "  softib resources\n"
      "  softib resources ib_send_lat\n"
      "  softib resources --node 1 --json | jq '.[].hints'");
  command.callback(
      [options] { until_down(options->fabric, options->watch, [&] { resources(*options); }); });
}

}  // namespace ib::softib
