// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib list: the fabrics of this user, one a line.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_list.h"
#include "softib/pages/fabric_state.h"
#include "softib/terminal/color.h"

#include <fmt/format.h>

namespace ib::softib {
namespace {

Json entry_of(const std::string& dir, const std::string& fabric) {
  Json entry{{"fabric", fabric}, {"state", "dead"}};
  try {
    std::optional<ControlClient> client = ControlClient::connect(fabric_files(dir, fabric).socket);
    if (!client) return entry;
    entry["pid"] = client->pid();
    const Json state = ask_state_without_nodes(*client);
    entry["state"] = "up";
    if (state.contains("kept")) entry["kept"] = is_kept(state);
    entry["nodes"] = node_count(state);
    entry["clients"] = list_of(state, "programs").size();
  } catch (const CliError& error) {  // one fabric that hangs must not hide the others
    entry["state"] = "failed";
    entry["reason"] = error.what();
  }
  return entry;
}

void list(bool as_json) {
  const Surroundings here = Surroundings::of_this_process();
  const std::string dir = choose_runtime_dir(here);
  Json entries = Json::array();
  for (const std::string& fabric : fabrics_in(dir)) entries.push_back(entry_of(dir, fabric));
  if (as_json) {
    print(Json{{"runtime_dir", dir}, {"fabrics", entries}}.dump(2) + "\n");
    return;
  }
  if (entries.empty()) {
    print(fmt::format("no fabric is up (looked in {})\n", dir));
    return;
  }
  std::string text = painted(Paint::Heading, fmt::format("{:<20} {:<7} {:>7} {:>6} {:>8}", "FABRIC",
                                                         "STATE", "PID", "NODES", "CLIENTS")) +
                     "\n";
  for (const Json& entry : entries) {
    const std::string state = fmt::format("{:<7}", text_of(entry, "state"));
    text += fmt::format("{:<20} {} {:>7} {:>6} {:>8}\n", text_of(entry, "fabric"),
                        entry["state"] == "up" ? state : painted(Paint::Bad, state),
                        text_of(entry, "pid"), text_of(entry, "nodes"), text_of(entry, "clients"));
    if (entry.contains("reason")) text += fmt::format("    {}\n", text_of(entry, "reason"));
    if (entry["state"] == "dead") text += "    its softibd was killed; `softib down` cleans up\n";
  }
  print(text);
}

}  // namespace

void add_list(CLI::App& app, Context&) {
  Command command(app, "list", "the fabrics of this user");
  auto as_json = std::make_shared<bool>(false);
  command.flag("--json", *as_json, "for programs");
  command.footer("Example:\n  softib list");
  command.callback([as_json] { list(*as_json); });
}

}  // namespace ib::softib
