// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib devices: the device tree as softibd's PnP manager has it. softib ls: names of devices.
#include "softib/command.h"
#include "softib/fabric_state.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

namespace control = verbs::control;

struct DevicesOptions {
  std::string fabric;
  bool json = false;
  bool ids = false;
};

std::string joined(const Json& list, const char* separator) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += separator;
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

// "soft_hca + ib_bus"; raw devices need none.
std::string drivers_of(const Json& node) {
  std::string text = text_of(node, "driver", "");
  const std::string filters = joined(list_of(node, "filters"), " + ");
  if (!filters.empty()) text += (text.empty() ? "" : " + ") + filters;
  return text;
}

void add_node(std::string& text, const Json& node, std::size_t depth, bool with_ids) {
  const std::string name = std::string(2 * depth, ' ') + text_of(node, "id");
  const std::string state = text_of(node, "state");
  const std::string power = text_of(node, "power");
  text += fmt::format("{:<52} {:<12}", name, state + (power == "D0" ? "" : ", " + power));
  if (const std::string drivers = drivers_of(node); !drivers.empty()) text += " " + drivers;
  if (!list_of(node, "open_files").empty()) {
    text += fmt::format("  (open: pid {})", joined(list_of(node, "open_files"), ", "));
  }
  text += "\n";
  const std::string indent(2 * depth + 4, ' ');
  if (const std::string note = text_of(node, "note", ""); !note.empty())
    text += indent + note + "\n";
  if (state == "failed") text += indent + text_of(node, "problem") + "\n";
  if (with_ids) {
    text += indent + text_of(node, "description") + "; " + text_of(node, "location") + "\n";
    text += indent + "hardware ids:   " + joined(list_of(node, "hardware_ids"), ", ") + "\n";
    text += indent + "compatible ids: " + joined(list_of(node, "compatible_ids"), ", ") + "\n";
  }
  for (const Json& child : list_of(node, "children")) add_node(text, child, depth + 1, with_ids);
}

void devices(const DevicesOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const std::string answer = client.read_text(control::Code::Devices);
  if (options.json) {
    print(answer);
    return;
  }
  const Json state = Json::parse(answer);
  std::string text;
  add_node(text, state["tree"], 0, options.ids);
  if (!list_of(state, "leaving").empty()) text += "\nPulled out, still in use:\n";
  for (const Json& node : list_of(state, "leaving")) add_node(text, node, 0, options.ids);
  print(text);
}

struct LsOptions {
  std::string fabric;
  std::string node;
  std::string path = "\\Device";
  bool json = false;
};

void ls(const LsOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.node, options.fabric);
  control::ViewIn in;
  put_text(in.node, node);
  put_text(in.path, options.path);
  const std::string answer = client.read_text(control::Code::ListNames, bytes_of(in));
  if (options.json) {
    print(answer);
    return;
  }
  std::string text;
  for (const Json& entry : Json::parse(answer)) {
    const std::string kind = text_of(entry, "kind");
    text += fmt::format("{:<10} {}", kind, text_of(entry, "name"));
    if (kind == "link") text += " -> " + text_of(entry, "target");
    if (kind == "device") text += "  " + text_of(entry, "device");
    text += "\n";
  }
  print(text);
}

}  // namespace

void add_devices(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("devices", "the device tree: states, drivers, ids");
  auto options = std::make_shared<DevicesOptions>();
  add_fabric_option(*command, options->fabric);
  command->add_flag("--json", options->json, "for programs");
  command->add_flag("--ids", options->ids, "with description, hardware and compatible ids");
  command->footer("Example:\n  softib devices --ids");
  command->callback([options] { devices(*options); });
}

void add_ls(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("ls", "names of devices, as programs open them");
  auto options = std::make_shared<LsOptions>();
  add_fabric_option(*command, options->fabric);
  command->add_option("path", options->path, "a directory")->option_text("PATH [\\Device]");
  add_node_option(*command, options->node);
  command->add_flag("--json", options->json, "for programs");
  command->footer("Examples:\n  softib ls\n  softib ls '\\Device\\ibal' --node 1");
  command->callback([options] { ls(*options); });
}

}  // namespace ib::softib
