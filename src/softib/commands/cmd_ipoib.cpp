// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib ipoib: the networks of nodes (IP over InfiniBand): which there are, and interfaces in
// network namespaces that are not softib's own.
#include "linux/net/namespaces.h"
#include "softib/commands/command.h"
#include "softib/launch/launcher.h"
#include "softib/launch/net_plan.h"
#include "softib/launch/node_network.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/ipoib_page.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ib::softib {
namespace {

struct IpoibOptions {
  std::string fabric;
  std::string node;
  std::string network_namespace;
  std::string mode;  // empty: that of the configuration file
  bool all = false;
  bool json = false;
};

NetPlace place_of(const IpoibOptions& options) {
  return {usable_runtime_dir(), options.fabric};
}

void require_rights(const char* what) {
  if (os::net::has_network_rights()) return;
  throw CliError(Exit::Permission,
                 fmt::format("softib ipoib {} needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): it is "
                             "about network namespaces that are not softib's own\n"
                             "  Without root: softib run --net -- CMD",
                             what));
}

// "": that of softib itself; a pid, or a name of `ip netns`.
Fd open_namespace(const std::string& wanted) {
  const bool is_pid =
      !wanted.empty() && std::ranges::all_of(wanted, [](char c) { return c >= '0' && c <= '9'; });
  if (wanted.find('/') != std::string::npos || wanted == "." || wanted == "..") {
    throw CliError(Exit::Usage,
                   fmt::format("--netns {}: give a name of `ip netns`, or a process id", wanted));
  }
  const std::string path = wanted.empty() ? "/proc/self/ns/net"
                           : is_pid       ? fmt::format("/proc/{}/ns/net", wanted)
                                          : "/run/netns/" + wanted;
  Fd file = make_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.valid() && os::net::is_network_namespace(file.get())) return file;
  const char* const why = file.valid() ? "it is no network namespace" : std::strerror(errno);
  throw CliError(Exit::NotFound, fmt::format("--netns {}: {}: {}", wanted, path, why));
}

void attach(const IpoibOptions& options) {
  require_rights("attach");
  Fd where = open_namespace(options.network_namespace);
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.node, options.fabric);
  const Json state = ask_state_without_nodes(client);
  const Json known = needs_all_nodes(state) ? ask_state(client) : ask_state_of_node(client, node);
  const NetPlace place = place_of(options);
  const std::string socket = fabric_files(place.runtime_dir, options.fabric).socket;
  const NetReply reply = request_network(
      place, find_installation(),
      network_request(NetCode::Attach, known, node, socket, options.mode), std::move(where));
  if (!reply.text.empty()) complain("warning: " + reply.text);
  print(fmt::format("{} is attached to {}\n", node,
                    options.network_namespace.empty()
                        ? "this network namespace"
                        : "the network namespace of " + options.network_namespace));
}

void detach(const IpoibOptions& options) {
  require_rights("detach");
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.node, options.fabric);
  if (!request_running_network(place_of(options), {NetCode::Detach, node, {}, {}}))
    throw CliError(Exit::NotFound, node + " is not attached");
  print(fmt::format("{} is detached\n", node));
}

Json read_json(const NetReply& reply) {
  Json json = Json::parse(read_fd(reply.first), nullptr, false);
  if (json.is_discarded()) throw CliError(Exit::Daemon, "softib-net sent no JSON");
  return json;
}

// Adds what the driver says.
void ask_driver(const NetPlace& place, Json& network) {
  if (!network.value("ready", false)) return;
  try {
    const auto one =
        request_running_network(place, {NetCode::Report, text_of(network, "node"), {}, {}});
    if (one) network["driver"] = read_json(*one);
  } catch (const CliError& error) {
    network["failure"] = error.what();
  }
}

// Without what their drivers say.
Json list_networks(const NetPlace& place) {
  const auto all = request_running_network(place, {NetCode::Report, {}, {}, {}});
  return all ? read_json(*all) : Json::array();
}

Json network_of_node(const Json& networks, const IpoibOptions& options) {
  ControlClient client = connect_up(options.fabric);
  const std::string node = ask_node(client, options.node, options.fabric);
  for (const Json& network : networks) {
    if (text_of(network, "node") == node) return Json::array({network});
  }
  throw CliError(Exit::NotFound,
                 fmt::format("{} has no network; softib run --node {} --net -- CMD makes one", node,
                             options.node));
}

void show(const IpoibOptions& options) {
  const NetPlace place = place_of(options);
  Json networks = list_networks(place);
  if (!options.node.empty()) networks = network_of_node(networks, options);
  IpoibShown shown;
  shown.networks = networks.size();
  shown.all = options.all;
  shown.log = net_files(place.runtime_dir, place.fabric).log;
  if (!options.json && !options.all && networks.size() > kNetworksShown)
    networks.erase(networks.begin() + kNetworksShown, networks.end());
  for (Json& network : networks) ask_driver(place, network);
  print(options.json ? networks.dump(2) + "\n" : ipoib_page(networks, shown));
}

}  // namespace

void add_ipoib(CLI::App& app, Context&) {
  Command command(app, "ipoib", "network interfaces of nodes (IP over InfiniBand)");
  command.require_subcommand();
  const auto add = [&](const char* name, const char* text) {
    Command action = command.subcommand(name, text);
    auto options = std::make_shared<IpoibOptions>();
    add_fabric_option(action, options->fabric);
    return std::pair(action, options);
  };
  auto [show_action, show_options] =
      add("show", "the interfaces of nodes, with their neighbours, paths and groups");
  show_action.option("node", show_options->node, "only this node: number or name")
      .placeholder("[N|NAME]");
  show_action.flag("-a,--all", show_options->all, "all nodes, and all rows of each table");
  show_action.flag("--json", show_options->json, "for programs (docs/status_json.md); all of it");
  show_action.callback([options = show_options] { show(*options); });

  auto [attach_action, attach_options] =
      add("attach", "put the interfaces of a node into a network namespace; needs root");
  add_node_option(attach_action, attach_options->node);
  attach_action
      .option("--netns", attach_options->network_namespace,
              "where: a name of `ip netns`, or a process; default: where softib runs")
      .placeholder("NAME|PID");
  attach_action
      .option("--mode", attach_options->mode,
              "of the interfaces; default: as the configuration file has it, else datagram")
      .one_of({"datagram", "connected"})
      .placeholder("datagram|connected");
  attach_action.callback([options = attach_options] { attach(*options); });

  auto [detach_action, detach_options] = add("detach", "take them out again; needs root");
  add_node_option(detach_action, detach_options->node);
  detach_action.callback([options = detach_options] { detach(*options); });
  command.footer(
      "softib run --net makes the network of a node without root. An attached node\n"
      "stays so until detach, or until the fabric goes down.\n"
      "\nExamples:\n"
      "  softib ipoib show\n"
      "  softib ipoib show node1 --all\n"
      "  softib ipoib attach --node 1 --netns blue\n"
      "  softib ipoib detach --node 1");
}

}  // namespace ib::softib
