// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The commands of `softib`, one file each (cmd_<name>.cpp). A command adds its options and what it
// does to the application; its callback throws CliError or leaves an exit code.
#pragma once

#include "base/buffers.h"
#include "setup/cli_error.h"
#include "setup/fabric_shape.h"
#include "softib/commands/options.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

struct Context {
  // The words behind "--": CLI11 must not parse the options of another program.
  std::vector<std::string> program;
  bool has_program = false;
  Exit exit = Exit::Ok;
};

void add_run(CLI::App& app, Context& context);
void add_up(CLI::App& app, Context& context);
void add_down(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_connections(CLI::App& app, Context& context);
void add_resources(CLI::App& app, Context& context);
void add_wait(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_trace(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_port(CLI::App& app, Context& context);
void add_devices(CLI::App& app, Context& context);
void add_topology(CLI::App& app, Context& context);
void add_counters(CLI::App& app, Context& context);
void add_cable(CLI::App& app, Context& context);
void add_switch(CLI::App& app, Context& context);
void add_path(CLI::App& app, Context& context);
void add_sm(CLI::App& app, Context& context);
void add_ls(CLI::App& app, Context& context);
void add_hca(CLI::App& app, Context& context);
void add_partition(CLI::App& app, Context& context);
void add_ipoib(CLI::App& app, Context& context);
void add_power(CLI::App& app, Context& context);
void add_driver(CLI::App& app, Context& context);
void add_env(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

// Options that several commands have. They write to `fabric` and the like, which live as long as
// the callback that owns them.
void add_fabric_option(Command& command, std::string& fabric, const char* names = "-f,--fabric");

void add_node_option(Command& command, std::string& node);
// Names a port of the fabric.
struct PortPlace {
  std::string node;
  std::string ca = "softib0";
  std::uint32_t port = 1;
};
void add_port_options(Command& command, PortPlace& place);
// Writes the port on `node` into a request, and returns it in words.
template <class In>
std::string put_port(In& in, const std::string& node, const PortPlace& place) {
  put_text(in.node, node);
  put_text(in.ca, place.ca);
  in.port = place.port;
  return "port " + std::to_string(place.port) + " of " + place.ca + " on " + node;
}

struct ShapeOptions {
  std::optional<std::string> nodes;
  std::uint32_t hcas = 0;
  std::uint32_t ports = 0;
  std::string link_layer;
  std::optional<std::string> max_memory;
  std::optional<std::string> config;
  std::optional<std::string> topology;
  std::string management;
  std::optional<std::uint32_t> sm_priority;
  std::optional<std::uint32_t> lmc;
  std::string routing;
  std::optional<std::string> partitions;
  std::string verify;
  std::uint64_t verify_seed = 1;

  // Throws CliError(Usage) about sizes, numbers, names and the configuration file.
  FabricShape shape() const;
};
void add_shape_options(Command& command, ShapeOptions& options);

// The text of `softib version` and --version.
std::string version_text();

// Text to standard output. The command ends quietly if the reader is gone; throws CliError(Failed)
// if it cannot be written.
void print(const std::string& text);
// The same of what `page` returns; with a pause again after each, without an end. On a terminal a
// page for people (not `json`) then replaces the one before, as much of it as fits.
void print_page(const std::function<std::string()>& page, std::optional<std::chrono::seconds> pause,
                bool json);
void print_page(const std::function<std::string()>& page, bool watch, bool json);  // 1 s
// "softib: text" to standard error.
void complain(const std::string& text);

}  // namespace ib::softib
