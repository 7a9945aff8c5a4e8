// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib port: pulls a cable and plugs it in again.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"
#include "softib/pages/status_page.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

struct PortOptions {
  std::string fabric;
  PortPlace place;
  std::string switch_name;
  bool up = false;
};

// Of a port that should be up and is not: why.
std::string what_is_missing(const Json& state, const std::string& node, const PortPlace& place) {
  for (const Json& host : list_of(state, "nodes")) {
    if (text_of(host, "name") != node) continue;
    for (const Json& hca : list_of(host, "hcas")) {
      if (text_of(hca, "name") != place.ca) continue;
      for (const Json& port : list_of(hca, "ports")) {
        const bool is_it = number_of(port, "number") == place.port && port.contains("peer");
        if (!is_it || text_of(port, "state") != "down") continue;
        return "the other end of its cable, " + peer_name(port["peer"]) + ", is down";
      }
    }
  }
  return {};
}

void set_switch_port(ControlClient& client, const PortOptions& options) {
  verbs::control::SetCableIn in;
  put_text(in.element, options.switch_name);
  in.port = options.place.port;
  in.up = options.up ? 1 : 0;
  const std::string which = fmt::format("port {} of {}", options.place.port, options.switch_name);
  client.require(static_cast<verbs::control::Code>(verbs::control::TopologyCode::SetCable),
                 bytes_of(in), which);
  let_managers_follow(client);
  print(fmt::format("{} is {}\n", which, options.up ? "free to come up" : "down"));
}

void set_port(const PortOptions& options) {
  ControlClient client = connect_up(options.fabric);
  if (!options.switch_name.empty()) return set_switch_port(client, options);
  const std::string node = ask_node(client, options.place.node, options.fabric);
  verbs::control::SetPortIn in;
  const std::string which = put_port(in, node, options.place);
  in.up = options.up ? 1 : 0;
  client.require(verbs::control::Code::SetPort, bytes_of(in), which);
  let_managers_follow(client);
  const std::string missing =
      options.up ? what_is_missing(ask_state_of_node(client, node), node, options.place) : "";
  if (!missing.empty()) return print(fmt::format("{} waits: {}\n", which, missing));
  print(fmt::format("{} is {}\n", which, options.up ? "up" : "down"));
}

void add_direction(Command& parent, const char* name, const char* text, bool up) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<PortOptions>();
  options->up = up;
  add_fabric_option(command, options->fabric);
  add_port_options(command, options->place);
  command.option("--switch", options->switch_name, "a port of this switch instead: name or GUID")
      .placeholder("NAME");
  command.callback([options] { set_port(*options); });
}

}  // namespace

void add_port(CLI::App& app, Context&) {
  Command command(app, "port", "take a port down or up, as if by its cable");
  command.require_subcommand();
  add_direction(command, "down", "no link: programs get a port error event, data stops", false);
  add_direction(command, "up", "link again: programs get a port active event", true);
  command.footer(
      "Examples:\n"
      "  softib port down\n"
      "  softib port up --node 1 --ca softib0 --port 2\n"
      "  softib port down --switch switch-1 --port 3");
}

}  // namespace ib::softib
