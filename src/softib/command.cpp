// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/command.h"

#include "fabric/model.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace ib::softib {

void add_fabric_option(CLI::App& command, std::string& fabric) {
  fabric = "default";
  command.add_option("-f,--fabric", fabric, "which fabric, if you have several")
      ->envname("SOFTIB_FABRIC")
      ->option_text("NAME [default]");
}

void add_node_option(CLI::App& command, std::string& node) {
  command.add_option("-n,--node", node, "the node: number or name")->option_text("N|NAME [0]");
}

void add_port_options(CLI::App& command, PortPlace& place) {
  add_node_option(command, place.node);
  command.add_option("--ca", place.ca, "the HCA")->option_text("NAME [softib0]");
  command.add_option("--port", place.port, "the port")
      ->check(CLI::Range(1u, 254u))
      ->option_text("N [1]");
}

void add_shape_options(CLI::App& command, ShapeOptions& options) {
  command
      .add_option("--nodes", options.nodes,
                  "virtual hosts of the fabric: a number (node0, node1, ...) or names")
      ->option_text("N|NAME,NAME...");
  command.add_option("--hcas", options.hcas, "HCAs of each node: softib0, softib1, ...")
      ->check(CLI::Range(1u, fabric::kMaxHcasPerNode))
      ->option_text("N [1]");
  command.add_option("--ports", options.ports, "ports of each HCA")
      ->check(CLI::Range(1u, fabric::kMaxPortsPerHca))
      ->option_text("N [1]");
  command
      .add_option("--max-memory", options.max_memory,
                  "most memory for queues and device memory of the fabric, such as 512M or 4G")
      ->option_text("SIZE");
  command
      .add_option("--config", options.config,
                  "children of ports, partitions, driver store (docs/cli.md)")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  command
      .add_flag(
          "--verify{on}", options.verify,
          "check drivers: requests and answers wait at random, what is left is reported (`softib "
          "trace`); --verify=faults: each request also fails in every way, once")
      ->check(CLI::IsMember({"on", "faults"}));
  command.add_option("--verify-seed", options.verify_seed, "repeats the choices of --verify")
      ->option_text("N [1]");
}

FabricShape ShapeOptions::shape() const {
  FabricShape result;
  if (!nodes.empty()) result.nodes = parse_nodes(nodes);
  if (hcas != 0) result.hcas = hcas;
  if (ports != 0) result.ports = ports;
  result.max_memory = max_memory;
  result.verify = verify;
  result.verify_seed = verify_seed;
  // softibd goes to another directory.
  if (!config.empty()) result.config = std::filesystem::absolute(config).string();
  return result;
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) == EOF) {
    std::exit(static_cast<int>(Exit::Failed));
  }
}

void complain(const std::string& text) {
  const std::string line = fmt::format("softib: {}\n", text);
  std::fputs(line.c_str(), stderr);
}

}  // namespace ib::softib
