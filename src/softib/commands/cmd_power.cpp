// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib power: the computers of the fabric sleep, wake and go down. softib driver: the drivers.
#include "softib/commands/command.h"
#include "softib/pages/device_page.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::PowerState;

struct PowerOptions {
  std::string fabric;
  std::string node;
  PowerState state = PowerState::Working;
};

void set_power(const PowerOptions& options, const char* done) {
  ControlClient client = connect_up(options.fabric);
  control::SetPowerIn in;
  std::string which = "fabric \"" + options.fabric + "\"";
  if (!options.node.empty()) {
    which = ask_node(client, options.node, options.fabric);
    put_text(in.node, which);
  }
  in.state = options.state;
  client.require(control::Code::SetPower, bytes_of(in), which);
  if (in.state != control::PowerState::Shutdown) let_managers_follow(client);
  print(fmt::format("{} {}\n", which, done));
}

void add_state(Command& parent, const char* name, const char* text, PowerState state,
               const char* done) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<PowerOptions>();
  options->state = state;
  add_fabric_option(command, options->fabric);
  if (state != PowerState::Shutdown) {
    command.option("-n,--node", options->node, "one node: number or name")
        .placeholder("N|NAME [all]");
  }
  command.callback([options, done] { set_power(*options, done); });
}

struct DriverOptions {
  std::string fabric;
  std::string name;
  bool json = false;
};

void change_driver(const DriverOptions& options, bool unload) {
  ControlClient client = connect_up(options.fabric);
  control::ChangeDriverIn in;
  put_text(in.name, options.name);
  in.unload = unload ? 1 : 0;
  client.require(control::Code::ChangeDriver, bytes_of(in), "driver " + options.name);
  print(fmt::format("driver {} is {}\n", options.name, unload ? "unloaded" : "loaded"));
}

void list_drivers(const DriverOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const Json state = Json::parse(client.read_text(control::Code::Devices, {}, kLimitOfAll));
  const Json& drivers = list_of(state, "drivers");
  if (options.json) {
    print(drivers.dump(2) + "\n");
    return;
  }
  print(drivers_page(drivers));
}

void add_driver_change(Command& parent, const char* name, const char* text, bool unload) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<DriverOptions>();
  add_fabric_option(command, options->fabric);
  command.option("driver", options->name, "its name").placeholder("NAME").required();
  command.callback([options, unload] { change_driver(*options, unload); });
}

}  // namespace

void add_power(CLI::App& app, Context&) {
  Command command(app, "power", "sleep, wake up, shut down");
  command.require_subcommand();
  add_state(command, "sleep", "HCAs are off; requests wait, queue pairs survive", PowerState::Sleep,
            "sleeps");
  add_state(command, "hibernate", "the same, as far as programs can tell", PowerState::Hibernate,
            "hibernates");
  add_state(command, "resume", "what waited goes on", PowerState::Working, "is awake");
  add_state(command, "shutdown", "devices go down in order, then softibd ends",
            PowerState::Shutdown, "is shut down");
  command.footer(
      "A driver may veto sleep (exit code 10). Programs get a port error when their\n"
      "HCA goes to sleep and port active when it is back.\n"
      "\nExamples:\n"
      "  softib power sleep --node 1\n"
      "  softib power hibernate\n"
      "  softib power resume\n"
      "  softib power shutdown");
}

void add_driver(CLI::App& app, Context&) {
  Command command(app, "driver", "drivers of the fabric");
  command.require_subcommand();
  Command list = command.subcommand("list", "all, with what holds those that are loaded");
  auto options = std::make_shared<DriverOptions>();
  add_fabric_option(list, options->fabric);
  list.flag("--json", options->json, "for programs");
  list.callback([options] { list_drivers(*options); });
  add_driver_change(command, "load", "with all it depends on; devices without a driver get it",
                    false);
  add_driver_change(command, "unload", "its devices first; their users have a veto (exit code 10)",
                    true);
  command.footer(
      "Examples:\n"
      "  softib driver list\n"
      "  softib driver load ping\n"
      "  softib driver unload ping");
}

}  // namespace ib::softib
