// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib topology: the subnet as it is: elements, cables, states. softib path: the way through it.
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/subnet/path_page.h"
#include "softib/subnet/subnet_request.h"
#include "softib/subnet/topology_picture.h"
#include "verbs/control_topology.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace ib::softib {
namespace {

using verbs::control::TopologyForm;

struct TopologyOptions {
  std::string fabric;
  bool json = false;
  bool table = false;
  std::string ibnetdiscover;
  std::string ibsim;
  std::string toml;
  PictureRequest picture;
  std::string serve;  // "on", or a port; empty: not
};

// "--serve" is "on"; "--serve=PORT".
std::uint16_t port_of(const std::string& text) {
  if (text == "on") return 0;
  std::uint16_t port = 0;
  const char* last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), last, port);
  if (error == std::errc{} && rest == last) return port;
  throw CliError(Exit::Usage, fmt::format("--serve={}: a port is a number from 1 to 65535, or 0 "
                                          "for any that is free",
                                          text));
}

void topology(const TopologyOptions& options) {
  PictureRequest picture = options.picture;
  picture.fabric = options.fabric;
  check_picture(picture, !options.serve.empty());
  if (!options.serve.empty()) return serve_picture(picture, port_of(options.serve));
  ControlClient client = connect_up(options.fabric);
  if (!picture.file.empty()) return write_picture(client, picture);
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

void path(const PathOptions& options) {
  if (options.ends.size() != 2) {
    throw CliError(Exit::Usage, "path takes two ends: nodes by name or number, or lid:N");
  }
  ControlClient client = connect_up(options.fabric);
  const std::string text = ask_path(client, options.ends[0], options.ends[1], options.fabric);
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
  command
      .option("-o,--output", options->picture.file,
              "draw it: .svg, .html (to zoom, click and search), or .dot of Graphviz")
      .placeholder("FILE");
  command.option("--from", options->picture.from, "show the way from this port, as softib path")
      .placeholder("NODE|lid:N");
  command.option("--to", options->picture.to, "to this one").placeholder("NODE|lid:N");
  command.flag("--serve{on}", options->serve,
               "a page on 127.0.0.1 that follows the fabric, until Ctrl-C; --serve=PORT");
  command.footer(
      "Examples:\n"
      "  softib up --topology fat-tree:hcas=16,ports=8\n"
      "  softib topology\n"
      "  softib topology --ibnetdiscover net.topo\n"
      "  softib topology -o net.svg --from node0 --to node7\n"
      "  softib topology --serve");
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
