// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib topology: the subnet as it is: elements, cables, states. softib path: the way through it.
#include "fabric/port.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/subnet/path_page.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using control::TopologyForm;

struct TopologyOptions {
  std::string fabric;
  bool json = false;
  bool table = false;
  std::string ibnetdiscover;
  std::string ibsim;
  std::string toml;
};

control::Code code_of(control::TopologyCode code) {
  return static_cast<control::Code>(code);
}

std::string ask_topology(ControlClient& client, TopologyForm form) {
  control::TopologyIn in;
  in.form = form;
  return client.read_text(code_of(control::TopologyCode::Topology), bytes_of(in), kLimitOfAll);
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") return print(text);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    throw CliError(Exit::Failed, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
}

void topology(const TopologyOptions& options) {
  ControlClient client = connect_up(options.fabric);
  if (!options.ibnetdiscover.empty()) {
    write_file(options.ibnetdiscover, ask_topology(client, TopologyForm::Ibnetdiscover));
  }
  if (!options.ibsim.empty()) write_file(options.ibsim, ask_topology(client, TopologyForm::Ibsim));
  if (!options.toml.empty()) write_file(options.toml, ask_topology(client, TopologyForm::Toml));
  if (!options.ibnetdiscover.empty() || !options.ibsim.empty() || !options.toml.empty()) return;
  const TopologyForm form = options.json    ? TopologyForm::Json
                            : options.table ? TopologyForm::Table
                                            : TopologyForm::Tree;
  print(ask_topology(client, form));
}

struct PathOptions {
  std::string fabric;
  std::vector<std::string> ends;
  bool json = false;
};

// A node by name or number, or a LID: "lid:5".
control::PathEnd end_of(ControlClient& client, const std::string& text, const std::string& fabric) {
  constexpr std::string_view kLid = "lid:";
  control::PathEnd end;
  if (!text.starts_with(kLid)) {
    put_text(end.node, ask_node(client, text, fabric));
    return end;
  }
  const char* first = text.data() + kLid.size();
  const char* last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(first, last, end.lid);
  if (error != std::errc{} || rest != last || end.lid == 0 || end.lid > fabric::kLastUnicastLid) {
    throw CliError(Exit::Usage, fmt::format("\"{}\": a LID is a number from 1 to {}", text,
                                            fabric::kLastUnicastLid));
  }
  return end;
}

void path(const PathOptions& options) {
  if (options.ends.size() != 2) {
    throw CliError(Exit::Usage, "path takes two ends: nodes by name or number, or lid:N");
  }
  ControlClient client = connect_up(options.fabric);
  control::PathIn in;
  in.from = end_of(client, options.ends[0], options.fabric);
  in.to = end_of(client, options.ends[1], options.fabric);
  const std::string text = client.read_text(code_of(control::TopologyCode::Path), bytes_of(in));
  print(options.json ? text : path_page(Json::parse(text)));
}

}  // namespace

void add_topology(CLI::App& app, Context&) {
  Command command(app, "topology", "switches, adapters and cables of the subnet");
  auto options = std::make_shared<TopologyOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs");
  command.flag("--table", options->table, "a line for each element instead of a tree");
  command.option("--ibnetdiscover", options->ibnetdiscover, "write it as ibnetdiscover does")
      .placeholder("FILE|-");
  command.option("--ibsim", options->ibsim, "write it as ibsim reads it").placeholder("FILE|-");
  command.option("--toml", options->toml, "write it as --topology FILE.toml takes it")
      .placeholder("FILE|-");
  command.footer(
      "Examples:\n"
      "  softib up --topology fat-tree:hcas=16,ports=8\n"
      "  softib topology\n"
      "  softib topology --ibnetdiscover net.topo");
  command.callback([options] { topology(*options); });
}

void add_path(CLI::App& app, Context&) {
  Command command(app, "path", "the way between two ports by the tables of the switches");
  auto options = std::make_shared<PathOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("--json", options->json, "for programs");
  command.option("ends", options->ends, "FROM TO: nodes by name or number, or lid:N");
  command.footer(
      "Example:\n"
      "  softib path node0 node7");
  command.callback([options] { path(*options); });
}

}  // namespace ib::softib
