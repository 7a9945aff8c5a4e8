// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib devices: the device tree as softibd's PnP manager has it. softib ls: names of devices.
#include "softib/commands/command.h"
#include "softib/pages/device_page.h"
#include "softib/pages/fabric_state.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

namespace control = verbs::control;

struct DevicesOptions {
  std::string fabric;
  bool json = false;
  bool ids = false;
};

void devices(const DevicesOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const std::string answer = client.read_text(control::Code::Devices, {}, kLimitOfAll);
  if (options.json) {
    print(answer);
    return;
  }
  print(devices_page(Json::parse(answer), options.ids));
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
  Command command(app, "devices", "the device tree: states, drivers, ids");
  auto options = std::make_shared<DevicesOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs");
  command.flag("--ids", options->ids, "with description, hardware and compatible ids");
  command.footer("Example:\n  softib devices --ids");
  command.callback([options] { devices(*options); });
}

void add_ls(CLI::App& app, Context&) {
  Command command(app, "ls", "names of devices, as programs open them");
  auto options = std::make_shared<LsOptions>();
  add_fabric_option(command, options->fabric);
  command.option("path", options->path, "a directory").placeholder("PATH [\\Device]");
  add_node_option(command, options->node);
  command.flag("--json", options->json, "for programs");
  command.footer("Examples:\n  softib ls\n  softib ls '\\Device\\ibal' --node 1");
  command.callback([options] { ls(*options); });
}

}  // namespace ib::softib
