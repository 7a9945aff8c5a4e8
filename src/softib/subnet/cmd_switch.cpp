// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib switch: switches come, go, and lose their power while programs run.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

#include <charconv>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::SwitchAction;

struct SwitchOptions {
  std::string fabric;
  std::string name;
  std::string guid;
  std::uint32_t ports = 36;
  bool json = false;
  SwitchAction action = SwitchAction::Add;
};

std::uint64_t parse_guid(const std::string& text) {
  if (text.empty()) return 0;
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + (prefixed ? 2 : 0), end, value, 16);
  if (error != std::errc{} || stop != end || value == 0) {
    throw CliError(Exit::Usage, fmt::format("\"{}\" is no GUID; 0x0002c90200001234, say", text));
  }
  return value;
}

std::string page(SwitchAction action, const Json& what) {
  const std::string name = text_of(what, "name");
  switch (action) {
    case SwitchAction::Add:
      return fmt::format(
          "{} ({}) is there, with {} ports and no cable; `softib cable add` joins it", name,
          text_of(what, "guid"), number_of(what, "ports"));
    case SwitchAction::Remove: return name + " and its cables are gone";
    case SwitchAction::Down: return name + " has no power: its links are down";
    case SwitchAction::Up: return name + " has power";
  }
  return {};
}

void change(const SwitchOptions& options) {
  control::ChangeSwitchIn in;
  in.action = options.action;
  put_text(in.name, options.name);
  if (options.action == SwitchAction::Add) {
    in.guid = parse_guid(options.guid);
    in.ports = options.ports;
  }
  ControlClient client = connect_up(options.fabric);
  const std::string text = client.read_text(
      static_cast<control::Code>(control::TopologyCode::ChangeSwitch), bytes_of(in));
  let_managers_follow(client);
  print(options.json ? text : page(options.action, Json::parse(text)) + "\n");
}

void add_action(Command& parent, const char* name, const char* text, SwitchAction action) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<SwitchOptions>();
  options->action = action;
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs");
  command.option("switch", options->name, "its name, of an old one also its GUID")
      .placeholder("NAME")
      .required();
  if (action == SwitchAction::Add) {
    command.option("--ports", options->ports, "how many")
        .placeholder("N [36]")
        .whole_number(1, 254);
    command.option("--guid", options->guid, "its node GUID").placeholder("GUID");
  }
  command.callback([options] { change(*options); });
}

}  // namespace

void add_switch(CLI::App& app, Context&) {
  Command command(app, "switch", "switches of the subnet, while it is in use");
  command.require_subcommand();
  add_action(command, "add", "the one removed by that name, else a new one; without a cable",
             SwitchAction::Add);
  add_action(command, "remove", "with all its cables", SwitchAction::Remove);
  add_action(command, "down", "no power: all its links go down, its cables stay",
             SwitchAction::Down);
  add_action(command, "up", "power again; what a subnet manager has set is lost", SwitchAction::Up);
  command.footer(
      "Examples:\n"
      "  softib switch add spine-9 --ports 16\n"
      "  softib cable add spine-9:1 switch-1:7\n"
      "  softib switch down switch-2\n"
      "  softib switch up switch-2\n"
      "  softib switch remove spine-9");
}

}  // namespace ib::softib
