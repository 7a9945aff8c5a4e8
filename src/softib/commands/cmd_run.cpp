// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib run: starts the fabric if necessary, then *becomes* CMD, so that its exit status, signals,
// terminal and standard streams are CMD's own.
#include "setup/address_space.h"
#include "softib/commands/command.h"
#include "softib/commands/usage.h"
#include "softib/launch/environment.h"
#include "softib/launch/launcher.h"
#include "softib/launch/net_plan.h"
#include "softib/launch/node_network.h"
#include "softib/launch/program.h"
#include "softib/launch/rank.h"
#include "softib/launch/socket_switch.h"
#include "softib/pages/fabric_state.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace ib::softib {
namespace {

// The fabric lives as long as CMD holds the connection it inherits (ControlClient::hand_over); the
// default linger is the time to start the next program. `softib explain` also reads the log of a
// dead one.
constexpr unsigned kLingerSeconds = 3;
// --net without a mode.
constexpr const char* kConfigured = "configured";

struct RunOptions {
  std::string fabric;
  std::string node;
  ShapeOptions shape;
  std::string path;
  std::string sockets;
  unsigned linger = kLingerSeconds;
  std::string net;  // empty: not wanted; kConfigured, or a mode
  bool verbose = false;
  std::vector<std::string> words;
};

void check_words(const Command& command, const std::vector<std::string>& words) {
  if (words.empty()) {
    throw CliError(Exit::Usage, "run: which program? Say `softib run -- CMD ARGS...`");
  }
  if (words.front().starts_with('-')) {
    throw CliError(Exit::Usage,
                   command.complaint_about(words.front()) + "\n  `softib run --help` tells more.");
  }
}

// Every process of the fabric maps device memory, which is large and mostly never touched. It
// reserves more address space than this, if the limit permits, for growth of the memory.
void check_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastAddressSpace) return;
  throw CliError(Exit::Resources,
                 fmt::format("RLIMIT_AS is {} MiB, but a program needs {} MiB of address space to "
                             "map device memory (it costs memory only where used)\n"
                             "  Raise the limit: ulimit -v unlimited",
                             limit.rlim_cur >> 20, kLeastAddressSpace >> 20));
}

// Of a fabric that is to be started. A node that is named like the word `auto` wins.
void check_node(const std::vector<std::string>& nodes, const RunOptions& options) {
  if (options.node == kNodeOfRank &&
      std::find(nodes.begin(), nodes.end(), options.node) == nodes.end()) {
    (void)node_of_rank(nodes.size(), current_environment());
  } else {
    (void)find_node(nodes, options.node, options.fabric);
  }
}

// Of one that is up.
std::string wanted_node(ControlClient& client, const Json& state, const RunOptions& options) {
  if (options.node != kNodeOfRank || ask_node_named(client, options.node)) {
    return ask_node(client, options.node, options.fabric);
  }
  const std::size_t number = node_of_rank(node_count(state), current_environment());
  return ask_node(client, std::to_string(number), options.fabric);
}

void warn_of_tcp(const std::string& file) {
  const std::string reason = tcp_only_reason(file);
  if (reason.empty()) return;
  complain(fmt::format(
      "warning: --sockets has no effect on {}, whose connections use plain TCP: {}", file, reason));
}

std::string choose_node(ControlClient& client, const RunOptions& options, const FabricShape& wanted,
                        const Json& state) {
  if (!shape_difference(state, wanted).empty()) {
    const std::string difference = shape_difference(ask_state(client), wanted);  // with names
    throw CliError(Exit::AlreadyUp,
                   fmt::format("fabric \"{}\" is up with another shape: {}\n"
                               "  `softib down` it first, leave the option out, or use another "
                               "name with --fabric.",
                               options.fabric, difference));
  }
  return wanted_node(client, state, options);
}

// Returns the connection that holds the network of the node.
Fd enter_node_network(ControlClient& client, const Json& state, const NetPlace& place,
                      const Installation& installation, const std::string& node,
                      const RunOptions& options) {
  const Json known = needs_all_nodes(state) ? ask_state(client) : ask_state_of_node(client, node);
  const std::string socket = fabric_files(place.runtime_dir, place.fabric).socket;
  NetReply reply = request_network(
      place, installation, network_request(NetCode::Join, known, node, socket, options.net));
  if (!reply.text.empty()) complain("warning: " + reply.text);
  enter_network(reply);
  return std::move(reply.connection);
}

void run_program(const RunOptions& options) {
  const FabricShape wanted = options.shape.shape();
  (void)fabric_files("", options.fabric);  // the name, before anything is made
  const std::string file = find_program(options.words.front());
  const Installation installation = find_installation();
  require_libraries(installation);
  if (!options.sockets.empty()) require_socket_switch(installation, options.sockets);
  check_address_space();

  LaunchPlan plan;
  plan.runtime_dir = usable_runtime_dir();
  plan.fabric = options.fabric;
  plan.shape = wanted;
  plan.idle_exit = options.linger;
  const FabricFiles files = fabric_files(plan.runtime_dir, plan.fabric);
  // A wrong node must not leave a new fabric behind.
  if (!ControlClient::connect(files.socket)) {
    check_node(wanted.node_names(), options);
  }
  Launched fabric = connect_or_start(plan, installation);
  Json state = ask_state_without_nodes(fabric.client);
  if (!shape_difference(state, wanted).empty()) {
    check_node(wanted.node_names(), options);
    if (replace_unused(fabric, plan, installation)) {
      state = ask_state_without_nodes(fabric.client);
    }
  }
  const std::string node = choose_node(fabric.client, options, wanted, state);

  Fd network;
  if (!options.net.empty()) {
    network = enter_node_network(fabric.client, state, {plan.runtime_dir, plan.fabric},
                                 installation, node, options);
  }
  if (const std::string flaw = tell_addresses(fabric.client, node); !flaw.empty()) {
    complain("warning: " + flaw);
  }

  const std::string blind = blind_reason(file);
  if (!blind.empty()) complain(fmt::format("warning: {} will not see softib: {}", file, blind));
  if (const std::string lost = lost_environment(options.words); !lost.empty()) {
    complain("warning: the program will not see softib: " + lost);
  }
  if (!options.sockets.empty()) warn_of_tcp(file);
  if (options.verbose) {
    complain(fmt::format("fabric {} ({} by softibd, pid {}), node {}, socket {}", options.fabric,
                         fabric.started ? "just started" : "served", fabric.client.pid(), node,
                         files.socket));
    complain(fmt::format("libraries in {}; running {}", installation.lib_dir, file));
  }
  ProgramSettings settings;
  settings.socket = files.socket;
  settings.runtime_dir = plan.runtime_dir;
  settings.fabric = options.fabric;
  settings.node = node;
  settings.memory_path = options.path;
  settings.sockets = options.sockets;
  settings.verbose = options.verbose;
  const Environment environment =
      compose_environment(current_environment(), installation, settings);
  fabric.client.hand_over();
  if (network.valid()) hand_over(network);
  become_program(options.words, environment);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  Command command(app, "run", "run a program that sees software HCAs");
  auto options = std::make_shared<RunOptions>();
  add_fabric_option(command, options->fabric);
  command
      .option("-n,--node", options->node,
              "the virtual host the program runs on: number, name, or auto for the ranks of MPI")
      .placeholder("N|NAME|auto [0]");
  add_shape_options(command, options->shape);
  command
      .option("--path", options->path,
              "how bytes get into other processes; for tests and comparisons")
      .one_of({"auto", "adopted", "process_vm", "bounce"})
      .placeholder("auto|adopted|process_vm|bounce");
  command
      .flag("--net{configured}", options->net,
            "in a network of the node: interfaces ib0, ib1 ... (IP over InfiniBand), in this mode")
      .one_of({kConfigured, "datagram", "connected"})
      .placeholder("[=datagram|connected]");
  command
      .flag("--sockets{fabric}", options->sockets,
            "TCP connections over RDMA (SDP, or librdmacm's rsockets): to all nodes, or to these "
            "addresses")
      .placeholder("[=[rsockets,]RANGES]");
  command
      .option("--linger", options->linger,
              "how long a fabric that this starts outlives its last program")
      .whole_number(0, 86400)
      .placeholder(fmt::format("SECONDS [{}]", kLingerSeconds));
  command.flag("-v,--verbose", options->verbose, "say what is done; programs say what fails");
  command.leave_rest();
  command.footer(
      "softib run [OPTIONS] [--] CMD ARGS...\n"
      "\nThe fabric is started if it is not up, and goes some seconds after the last\n"
      "program ended. --nodes, --hcas, --ports, --link-layer, --max-memory and\n"
      "--linger are for a fabric that is started.\n"
      "\n--node auto places the ranks that mpirun, mpiexec or srun starts, in blocks: of\n"
      "four ranks on two nodes the first two are on node 0.\n"
      "\n--net gives CMD the network interfaces of its node and no others. Programs of a\n"
      "node share them; they go with the last one. Root is not needed. The mode is that\n"
      "of the first program, by default that of the configuration file, else datagram.\n"
      "\nExamples:\n"
      "  softib run -- ibv_devinfo -v\n"
      "  softib run --nodes 2 --node 0 -- ib_send_bw &\n"
      "  softib run --nodes 2 --node 1 -- ib_send_bw localhost\n"
      "  softib run --path process_vm -- ib_write_lat localhost\n"
      "  mpirun -n 4 softib run --nodes 2 --node auto -- ./program\n"
      "  softib run --nodes 2 --node 1 --sockets -- curl http://node0:8000/\n"
      "  softib run --nodes 2 --node 1 --net -- ping node0\n"
      "  softib run --node 1 --net=connected -- iperf3 -c node0\n"
      "\nExit code: that of CMD; 126 if it cannot be run, 127 if it is not found; else\n"
      "see `softib --help`.");
  command.callback([command, options, &context] {
    options->words = command.remaining();
    // `softib run git log -- x`: the "--" is git's.
    if (context.has_program && !options->words.empty()) options->words.emplace_back("--");
    options->words.insert(options->words.end(), context.program.begin(), context.program.end());
    check_words(command, options->words);
    run_program(*options);
  });
}

}  // namespace ib::softib
