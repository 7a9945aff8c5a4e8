// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib hca: plugs adapters in and out. softib partition: extra P_Keys of a port.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/manager_state.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace ib::softib {
namespace {

namespace control = verbs::control;

struct HcaOptions {
  std::string fabric;
  std::string node;
  std::string ca;
  control::HcaAction action = control::HcaAction::Add;
};

void change(const HcaOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.node, options.fabric);
  control::ChangeHcaIn in;
  put_text(in.node, node);
  put_text(in.ca, options.ca);
  in.action = options.action;
  const std::string which = (options.ca.empty() ? "an HCA" : options.ca) + " on " + node;
  const std::string what =
      options.action == control::HcaAction::Add ? "cannot plug in " + which : which;
  const std::string output = client.require(control::Code::ChangeHca, bytes_of(in), what);
  let_managers_follow(client);
  if (options.action == control::HcaAction::Add) {
    control::CaName added;
    if (output.size() >= sizeof added) std::memcpy(&added, output.data(), sizeof added);
    print(fmt::format(
        "{} on {} is plugged in\n",
        std::string_view(added.name.data(), ::strnlen(added.name.data(), added.name.size())),
        node));
    return;
  }
  const bool removed = options.action == control::HcaAction::Remove;
  print(fmt::format("{} is {}\n", which, removed ? "removed" : "pulled out"));
}

void add_action(Command& parent, const char* name, const char* text, control::HcaAction action) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<HcaOptions>();
  options->action = action;
  add_fabric_option(command, options->fabric);
  Option ca = command.option("hca", options->ca, "the HCA").placeholder("NAME");
  if (action != control::HcaAction::Add) ca.required();
  add_node_option(command, options->node);
  command.callback([options] { change(*options); });
}

struct PartitionOptions {
  std::string fabric;
  PortPlace place;
  std::string pkey;
  std::string name;
  bool remove = false;
};

std::uint16_t parse_pkey(const std::string& text) {
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const char* begin = text.data() + (prefixed ? 2 : 0);
  const char* end = text.data() + text.size();
  std::uint16_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, 16);
  if (error != std::errc{} || stop != end || (value & 0x7fff) == 0) {
    throw CliError(Exit::Usage, fmt::format("\"{}\" is no P_Key; 0x8001, say", text));
  }
  return value;
}

void change_partition(const PartitionOptions& options) {
  control::ChangePartitionIn in;
  in.pkey = parse_pkey(options.pkey);
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.place.node, options.fabric);
  const std::string name = options.name.empty() ? fmt::format("i{:04x}", in.pkey) : options.name;
  put_text(in.name, name);
  in.remove = options.remove ? 1 : 0;
  const std::string which =
      fmt::format("partition {:#06x} of {}", in.pkey, put_port(in, node, options.place));
  client.require(control::Code::ChangePartition, bytes_of(in), which);
  print(fmt::format("{} is {}\n", which, options.remove ? "removed" : "there"));
}

void add_partition_action(Command& parent, const char* name, const char* text, bool remove) {
  Command command = parent.subcommand(name, text);
  auto options = std::make_shared<PartitionOptions>();
  options->remove = remove;
  add_fabric_option(command, options->fabric);
  command.option("pkey", options->pkey, "the P_Key, in hex").placeholder("PKEY").required();
  if (!remove) {
    command.option("--name", options->name, "of its device: i... IPoIB, e... Ethernet")
        .placeholder("NAME [i<P_Key>]");
  }
  add_port_options(command, options->place);
  command.callback([options] { change_partition(*options); });
}

}  // namespace

void add_hca(CLI::App& app, Context&) {
  Command command(app, "hca", "plug an HCA in or out of a node");
  command.require_subcommand();
  add_action(command, "add", "the one named, else one that is out, else a new one",
             control::HcaAction::Add);
  add_action(command, "remove", "safely: programs that use it have a veto (exit code 10)",
             control::HcaAction::Remove);
  add_action(command, "eject", "pull it out: programs get device fatal, their work flushes",
             control::HcaAction::Eject);
  command.footer(
      "Examples:\n"
      "  softib hca remove softib0\n"
      "  softib hca eject softib0 --node 1\n"
      "  softib hca add");
}

void add_partition(CLI::App& app, Context&) {
  Command command(app, "partition", "extra P_Keys of a port, with their devices");
  command.require_subcommand();
  add_partition_action(command, "add", "programs get a P_Key change event", false);
  add_partition_action(command, "remove", "not while queue pairs use it (exit code 10)", true);
  command.footer(
      "Examples:\n"
      "  softib partition add 0x8001\n"
      "  softib partition remove 0x8001 --node 1");
}

}  // namespace ib::softib
