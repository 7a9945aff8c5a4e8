// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/commands/command.h"

#include "fabric/model.h"
#include "fabric/topology/node_names.h"
#include "setup/driver_store.h"
#include "setup/fabric_config.h"
#include "setup/partitions_file.h"
#include "setup/topology_source.h"
#include "softib/commands/usage.h"
#include "softib/launch/program.h"
#include "softib/terminal/color.h"
#include "softib/terminal/terminal.h"
#include "verbs/link_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

namespace ib::softib {

void add_fabric_option(Command& command, std::string& fabric, const char* names) {
  fabric = "default";
  command.option(names, fabric, "which fabric, if you have several")
      .environment("SOFTIB_FABRIC")
      .placeholder("NAME [default]");
}

void add_node_option(Command& command, std::string& node) {
  command.option("-n,--node", node, "the node: number or name").placeholder("N|NAME [0]");
}

void add_port_options(Command& command, PortPlace& place) {
  add_node_option(command, place.node);
  command.option("--ca", place.ca, "the HCA").placeholder("NAME [softib0]");
  command.option("--port", place.port, "the port").whole_number(1, 254).placeholder("N [1]");
}

void add_shape_options(Command& command, ShapeOptions& options) {
  command
      .option("--nodes", options.nodes,
              "virtual hosts of the fabric: a number (node0, node1, ...) or names")
      .placeholder("N|NAME,NAME...");
  command.option("--hcas", options.hcas, "HCAs of each node: softib0, softib1, ...")
      .whole_number(1, fabric::kMaxHcasPerNode)
      .placeholder("N [1]");
  command.option("--ports", options.ports, "ports of each HCA")
      .whole_number(1, fabric::kMaxPortsPerHca)
      .placeholder("N [1]");
  command
      .option("--link-layer", options.link_layer,
              "ports of HCAs: infiniband, or ethernet for RoCE v2")
      .one_of({"infiniband", "ethernet"})
      .placeholder("LAYER [infiniband]");
  command
      .option(
          "--topology", options.topology,
          "switches and cables: a preset, such as star:8 or fat-tree:hcas=648,ports=36, or a "
          "file of ibnetdiscover, ibsim or ibutils, or in TOML (.toml); its channel adapters are "
          "the nodes")
      .placeholder("PRESET|FILE");
  command
      .option(
          "--sm", options.management,
          "who manages subnets: softib, until a subnet manager runs as a program; direct: softib "
          "sets them up without a manager that others see; none: ports wait for one; opensm: it "
          "is started with the fabric")
      .one_of({"softib", "direct", "none", "opensm"})
      .placeholder("WHO [softib]");
  command
      .option("--sm-priority", options.sm_priority,
              "softib's subnet manager does not give way, but takes part in the election, with "
              "this priority")
      .whole_number(0, 15)
      .placeholder("N");
  command.option("--lmc", options.lmc, "each port of an HCA has 2^N LIDs")
      .whole_number(0, 7)
      .placeholder("N [0]");
  command.option("--routing", options.routing, "how softib's subnet manager routes")
      .one_of({"automatic", "min-hop", "up/down", "fat-tree", "torus"})
      .placeholder("NAME [automatic]");
  command
      .option("--partitions", options.partitions,
              "partitions, in the syntax of OpenSM's partitions.conf; softib's subnet manager "
              "writes them into ports and switches")
      .placeholder("FILE");
  command
      .option("--max-memory", options.max_memory,
              "most memory for queues and device memory of the fabric, such as 512M or 4G")
      .placeholder("SIZE");
  command
      .option("--config", options.config,
              "children of ports, partitions, link layers, addresses, cables, driver store "
              "(docs/cli.md)")
      .placeholder("FILE");
  command
      .flag("--verify{on}", options.verify,
            "check drivers: requests and answers wait at random, what is left is reported (`softib "
            "trace`); --verify=faults: each request also fails in every way, once")
      .one_of({"on", "faults"})
      .placeholder("[=faults]");
  command.option("--verify-seed", options.verify_seed, "repeats the choices of --verify")
      .whole_number(0, std::numeric_limits<std::uint64_t>::max())
      .placeholder("N [1]");
}

namespace {

// Checks the file as softibd does, before anything is started.
void check_config(const FabricShape& shape) {
  std::string reason;
  const auto config = read_fabric_config(shape.config, reason);
  if (!config) throw CliError(Exit::Usage, reason);
  const std::vector<std::string> nodes = shape.node_names();
  for (const PartitionConfig& partition : (*config).partitions) {
    const std::string what =
        shape.config + ":" + partition.place + "[[partition]] " + partition.name;
    if (!partition.node.empty() && std::ranges::find(nodes, partition.node) == nodes.end()) {
      throw CliError(Exit::Usage, fmt::format("{}: the fabric has no node \"{}\"; it has {}", what,
                                              partition.node, fmt::join(nodes, ", ")));
    }
    const std::uint32_t ports = shape.ports.value_or(1);
    if (partition.port < 1 || partition.port > ports) {
      throw CliError(Exit::Usage, fmt::format("{}: HCAs have port{}, not {}", what,
                                              ports == 1 ? " 1" : "s 1 to 2", partition.port));
    }
  }
  fabric::Shape whole;
  whole.nodes = nodes;
  whole.hcas_per_node = shape.hcas.value_or(1);
  whole.ports_per_hca = shape.ports.value_or(1);
  if (!shape.link_layer.empty()) whole.link_layer = verbs::link_layer_of(shape.link_layer);
  if (apply_link_layers(*config, whole, reason) != Status::Ok) {
    throw CliError(Exit::Usage, fmt::format("{}:{}", shape.config, reason));
  }
  if (!shape.topology.empty()) whole.topology = *read_topology(shape.topology, reason);
  auto fabric = fabric::Fabric::create(whole);
  if (fabric && (apply_addresses(*config, *fabric, reason) != Status::Ok ||
                 apply_cables(*config, *fabric, reason) != Status::Ok)) {
    throw CliError(Exit::Usage, fmt::format("{}:{}", shape.config, reason));
  }
  if ((*config).drivers.empty()) return;
  std::vector<std::string> complaints;
  if (!read_driver_store((*config).drivers, complaints, reason)) {
    throw CliError(Exit::Usage, fmt::format("{}: {}", shape.config, reason));
  }
  for (const std::string& complaint : complaints)
    complain("warning: " + complaint + "; it is left out");
}

// Reads the topology as softibd does, before anything is started.
void read_topology_option(const std::string& source, FabricShape& shape) {
  if (!shape.nodes.empty() || shape.hcas || shape.ports) {
    throw CliError(Exit::Usage,
                   "--topology has the nodes with their HCAs and ports: leave --nodes, --hcas and "
                   "--ports out");
  }
  std::string reason;
  const auto topology = read_topology(source, reason);
  if (!topology) throw CliError(Exit::Usage, fmt::format("--topology: {}", reason));
  shape.topology = absolute_topology(source);
  shape.nodes = fabric::nodes_of(*topology);
  if (shape.nodes.empty()) {
    throw CliError(Exit::Usage, fmt::format("--topology {}: no channel adapter is in it, so no "
                                            "program could run there",
                                            source));
  }
}

// Checks the file as softibd does, before anything is started. Returns its absolute path.
std::string checked_partitions(const std::string& path) {
  std::string reason;
  if (!read_partitions(path, reason)) throw CliError(Exit::Usage, reason);
  return std::filesystem::absolute(path).string();
}

std::string find_opensm() {
  try {
    return find_program("opensm");
  } catch (const CliError&) {
    // These are not in the path of all users.
    for (const char* program : {"/usr/sbin/opensm", "/usr/local/sbin/opensm"}) {
      if (::access(program, X_OK) == 0) return program;
    }
  }
  throw CliError(Exit::NotFound,
                 "--sm opensm: OpenSM is not installed (Debian: apt install opensm); --sm softib "
                 "needs nothing");
}

// Settings of a manager that would not be there.
void check_manager_options(const FabricShape& shape) {
  const bool has_settings =
      shape.sm_priority || shape.lmc || !shape.routing.empty() || !shape.partitions.empty();
  if (!has_settings) return;
  const char* const what =
      "--sm-priority, --lmc, --routing and --partitions are for softib's own "
      "subnet manager";
  if (!shape.management.empty() && shape.management != "softib") {
    throw CliError(Exit::Usage, fmt::format("{}, not for --sm {}", what, shape.management));
  }
  if (shape.topology.empty() && shape.config.empty()) {
    throw CliError(Exit::Usage,
                   fmt::format("{}, which works in subnets with cables: give --topology", what));
  }
}

}  // namespace

FabricShape ShapeOptions::shape() const {
  FabricShape result;
  if (nodes) result.nodes = parse_nodes(*nodes);
  if (hcas != 0) result.hcas = hcas;
  if (ports != 0) result.ports = ports;
  result.link_layer = link_layer;
  result.management = management;
  if (management == "opensm") result.opensm = find_opensm();
  result.sm_priority = sm_priority;
  result.lmc = lmc;
  result.routing = routing;
  if (partitions) result.partitions = checked_partitions(*partitions);
  if (topology) read_topology_option(*topology, result);
  if (max_memory) result.max_memory = parse_memory_size(*max_memory);
  result.verify = verify;
  result.verify_seed = verify_seed;
  if (config) {
    // softibd goes to another directory.
    result.config = std::filesystem::absolute(*config).string();
    check_config(result);
  }
  check_manager_options(result);
  return result;
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) != EOF && std::fflush(stdout) != EOF) return;
  if (errno == EPIPE) std::exit(static_cast<int>(Exit::Failed));
  throw CliError(Exit::Failed, fmt::format("cannot write the output: {}", std::strerror(errno)));
}

void print_page(const std::function<std::string()>& page, bool watch, bool json) {
  const std::chrono::seconds second(1);
  print_page(page, watch ? std::optional(second) : std::nullopt, json);
}

void print_page(const std::function<std::string()>& page, std::optional<std::chrono::seconds> pause,
                bool json) {
  if (!pause) return print(page());
  const bool in_place = !json && ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const std::string text = page();
    print(in_place ? "\033[H\033[J" + fit_to(text, terminal_size()) : text);
    std::this_thread::sleep_for(*pause);
  }
}

void complain(const std::string& text) {
  const bool warning = text.starts_with("warning");
  const std::string name = painted(warning ? Paint::Warning : Paint::Bad, "softib:", Stream::Error);
  const std::string line = fmt::format("{} {}\n", name, text);
  std::fputs(line.c_str(), stderr);
}

}  // namespace ib::softib
