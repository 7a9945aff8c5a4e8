// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib cable: plugs cables in and pulls them out while programs run, and spoils what they carry.
#include "fabric/topology/link_names.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"
#include "softib/subnet/cable_page.h"
#include "softib/subnet/subnet_request.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::CableAction;

struct CableOptions {
  std::string fabric;
  std::string a;
  std::string b;
  std::string width = "4x";
  std::string speed = "EDR";
  bool json = false;
  CableAction action = CableAction::Show;
};

control::Code code_of(control::TopologyCode code) {
  return static_cast<control::Code>(code);
}

void put_end(control::CableEnd& to, ControlClient& client, const std::string& text,
             const std::string& fabric) {
  const auto end = parse_cable_end(text);
  if (!end) {
    throw CliError(Exit::Usage,
                   fmt::format("\"{}\" is no port: SWITCH:PORT, NODE:PORT or NODE/HCA:PORT", text));
  }
  put_text(to.element, with_node_name(client, end->element, fabric));
  to.port = end->port;
}

void change(const CableOptions& options) {
  ControlClient client = connect_up(options.fabric);
  control::ChangeCableIn in;
  in.action = options.action;
  put_end(in.a, client, options.a, options.fabric);
  if (options.action == CableAction::Add) {
    put_end(in.b, client, options.b, options.fabric);
    in.width = fabric::width_code(options.width);
    in.speed = fabric::speed_code(options.speed);
  }
  const auto ask = [&] {
    return client.read_text(code_of(control::TopologyCode::ChangeCable), bytes_of(in));
  };
  std::string text = ask();
  if (options.action != CableAction::Show) let_managers_follow(client);
  if (options.action == CableAction::Add || options.action == CableAction::Up) {
    in.action = CableAction::Show;  // the ports are active now
    text = ask();
  }
  if (options.json) return print(text);
  std::string page = cable_page(Json::parse(text));
  if (options.action == CableAction::Remove) {
    page = page.substr(0, page.rfind(" is ")) + " is pulled out";
  }
  print(page + "\n");
}

std::shared_ptr<CableOptions> add_action(Command& command, CableAction action) {
  auto options = std::make_shared<CableOptions>();
  options->action = action;
  add_fabric_option(command, options->fabric);
  command.option("port", options->a, "an end of it").placeholder("A:PORT").required();
  command.flag("--json", options->json, "for programs");
  command.callback([options] { change(*options); });
  return options;
}

struct ErrorOptions {
  std::string fabric;
  std::string end;
  control::CableErrorsIn errors;
};

void spoil(const ErrorOptions& options) {
  control::CableErrorsIn in = options.errors;
  const std::uint64_t sum = std::uint64_t{in.symbol} + in.recovery + in.downed + in.physical +
                            in.overrun + in.watchdog + in.remote + in.discards;
  if (sum == 0) {
    throw CliError(Exit::Usage, "no errors: say which and how many, as --symbol 10");
  }
  ControlClient client = connect_up(options.fabric);
  put_end(in.end, client, options.end, options.fabric);
  client.require(code_of(control::TopologyCode::CableErrors), bytes_of(in), options.end);
  print(fmt::format("{} has {} more error{}\n", options.end, sum, sum == 1 ? "" : "s"));
}

void add_errors(Command& parent) {
  Command command = parent.subcommand("errors", "errors that an end of it counts, and reports");
  auto options = std::make_shared<ErrorOptions>();
  add_fabric_option(command, options->fabric);
  command.option("port", options->end, "the end that receives").placeholder("A:PORT").required();
  control::CableErrorsIn& in = options->errors;
  command.option("--symbol", in.symbol, "SymbolErrorCounter").placeholder("N");
  command.option("--recover", in.recovery, "LinkErrorRecoveryCounter, at both ends")
      .placeholder("N");
  command
      .option("--downed", in.downed,
              "LinkDownedCounter, at both ends: the link goes and comes back")
      .placeholder("N");
  command
      .option("--physical", in.physical,
              "bad packets in a row: PortRcvErrors; trap 129 above the threshold LocalPhyErrors")
      .placeholder("N");
  command
      .option("--overrun", in.overrun,
              "buffer overruns in a row: PortRcvErrors; trap 130 above the threshold OverrunErrors")
      .placeholder("N");
  command.option("--watchdog", in.watchdog, "flow control was silent for too long: trap 131")
      .placeholder("N");
  command.option("--remote", in.remote, "PortRcvRemotePhysicalErrors").placeholder("N");
  command.option("--discards", in.discards, "PortXmitDiscards").placeholder("N");
  command.callback([options] { spoil(*options); });
}

}  // namespace

void add_cable(CLI::App& app, Context&) {
  Command command(app, "cable", "cables of the subnet, while it is in use");
  command.require_subcommand();
  Command add = command.subcommand("add", "plug one in between two ports");
  const auto added = add_action(add, CableAction::Add);
  add.option("other", added->b, "the other end").placeholder("B:PORT").required();
  add.option("--width", added->width, "lanes")
      .placeholder("WIDTH [4x]")
      .one_of({"1x", "2x", "4x", "8x", "12x"});
  add.option("--speed", added->speed, "of a lane")
      .placeholder("SPEED [EDR]")
      .one_of({"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR"});
  Command remove = command.subcommand("remove", "pull one out");
  add_action(remove, CableAction::Remove);
  Command down = command.subcommand("down", "take the port down, the cable stays");
  add_action(down, CableAction::Down);
  Command up = command.subcommand("up", "both ends may come up again");
  add_action(up, CableAction::Up);
  Command show = command.subcommand("show", "where it leads, and its state");
  add_action(show, CableAction::Show);
  add_errors(command);
  command.footer(
      "Ports are SWITCH:PORT, by name or GUID, NODE:PORT, or NODE/HCA:PORT.\n"
      "Examples:\n"
      "  softib cable remove switch-1:3\n"
      "  softib cable add switch-1:3 node2/softib0:1 --width 1x --speed SDR\n"
      "  softib cable down node2:1\n"
      "  softib cable up node2:1\n"
      "  softib cable show switch-1:3 --json\n"
      "  softib cable errors node2:1 --symbol 100 --physical 10");
}

}  // namespace ib::softib
