// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib up: a fabric that stays until `softib down`.
#include "fabric/topology/presets.h"
#include "setup/fd.h"
#include "setup/file_digest.h"
#include "setup/runtime_dir.h"
#include "setup/topology_source.h"
#include "softib/commands/command.h"
#include "softib/launch/launcher.h"
#include "softib/pages/fabric_state.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

struct UpOptions {
  std::string fabric;
  ShapeOptions shape;
};

// Returns how the running fabric differs from the command line; empty if it does not.
std::string difference(const Json& state, const FabricShape& wanted) {
  if (std::string shape = shape_difference(state, wanted); !shape.empty()) return shape;
  if (wanted.max_memory && number_of(state, "max_memory") != *wanted.max_memory) {
    const std::uint64_t limit = number_of(state, "max_memory");
    return fmt::format("it was started with {}",
                       limit == 0 ? "no --max-memory" : fmt::format("--max-memory {}", limit));
  }
  if (!wanted.topology.empty() &&
      text_of(state, "topology_digest") != topology_digest(wanted.topology)) {
    return state.contains("topology")
               ? fmt::format("its topology is {}, as it was then", text_of(state, "topology"))
               : "it was started without a topology";
  }
  if (!wanted.config.empty() && text_of(state, "config_digest") != file_digest(wanted.config)) {
    return state.contains("config")
               ? fmt::format("{} was another file when it was started", text_of(state, "config"))
               : "it was started without a configuration file";
  }
  return {};
}

// The fabric runs because of some `softib run`: keep it, if it has the wanted shape.
bool keep_running_one(ControlClient& client, const Json& state, const FabricShape& wanted) {
  if (!state.contains("kept") || is_kept(state)) return false;
  if (!difference(state, wanted).empty()) return false;
  verbs::control::KeepIn in;
  in.keep = 1;
  client.require(verbs::control::Code::Keep, bytes_of(in), "cannot keep the fabric");
  return true;
}

std::string description(const Json& state) {
  const std::size_t nodes = node_count(state);
  const std::uint64_t hcas = number_of(state.value("shape", Json()), "hcas");
  std::string text =
      fmt::format("{} node{}, {} HCA{}", nodes, nodes == 1 ? "" : "s", hcas, hcas == 1 ? "" : "s");
  const std::uint64_t switches = number_of(state, "switches");
  if (switches != 0) text += fmt::format(", {} switch{}", switches, switches == 1 ? "" : "es");
  return text;
}

// Waits until OpenSM has made the first port active.
void wait_for_opensm(ControlClient& client, const std::string& node) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (;;) {
    const Json state = ask_state_of_node(client, node);
    const Json opensm = state.value("opensm", Json::object());
    const std::string end = text_of(opensm, "end", "it did not begin");
    const std::string folder = text_of(opensm, "folder");
    if (!end.empty()) {
      throw CliError(
          Exit::Daemon,
          fmt::format("OpenSM has ended ({}); the fabric is up without a subnet manager\n"
                      "  The end of {}/output:\n{}  The end of {}/opensm.log:\n{}",
                      end, folder, last_lines(folder + "/output", 5), folder,
                      last_lines(folder + "/opensm.log", 5)));
    }
    for (const Json& port : list_of(list_of(state, "nodes").at(0).at("hcas").at(0), "ports")) {
      if (text_of(port, "state") == "active") return;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw CliError(Exit::Daemon, fmt::format("OpenSM has not brought the subnet up in 120 s; its "
                                               "log is {}/opensm.log",
                                               folder));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void up(const UpOptions& options) {
  LaunchPlan plan;
  plan.fabric = options.fabric;
  (void)fabric_files("", plan.fabric);  // the name, before anything is made
  plan.shape = options.shape.shape();
  plan.runtime_dir = usable_runtime_dir();
  plan.keep = true;
  const Installation installation = find_installation();
  Launched fabric = connect_or_start(plan, installation);
  Json state = ask_state_without_nodes(fabric.client);
  if (!fabric.started && keep_running_one(fabric.client, state, plan.shape)) {
    print(fmt::format("fabric \"{}\" was up for `softib run` and now stays: {} (softibd, pid {})\n",
                      options.fabric, description(state), fabric.client.pid()));
    return;
  }
  if (replace_unused(fabric, plan, installation)) {
    state = ask_state_without_nodes(fabric.client);
  }
  const pid_t pid = fabric.client.pid();
  if (fabric.started) {
    if (!plan.shape.opensm.empty()) {
      wait_for_opensm(fabric.client, plan.shape.node_names().front());
    }
    print(fmt::format("fabric \"{}\" is up: {} (softibd, pid {})\n", options.fabric,
                      description(state), pid));
    return;
  }
  if (!difference(state, plan.shape).empty()) {
    const std::string other = difference(ask_state(fabric.client), plan.shape);  // with names
    throw CliError(Exit::AlreadyUp,
                   fmt::format("fabric \"{}\" is up with another shape (pid {}): {}\n"
                               "  Use it as it is, `softib down` it first, or start another one "
                               "with --fabric NAME.",
                               options.fabric, pid, other));
  }
  print(fmt::format("fabric \"{}\" is up already: {} (softibd, pid {})\n", options.fabric,
                    description(state), pid));
}

}  // namespace

void add_up(CLI::App& app, Context&) {
  Command command(app, "up", "start a fabric that stays until `softib down`");
  auto options = std::make_shared<UpOptions>();
  add_fabric_option(command, options->fabric);
  add_shape_options(command, options->shape);
  command.footer(
      "One that is up already stays as it is; one that `softib run` has started stays\n"
      "from now on. If another shape is asked for, one of `softib run` that no program\n"
      "uses makes room; else that is an error (exit code 4), which names the\n"
      "difference.\n"
      "\nTopologies:\n" +
      std::string(fabric::kPresetHelp) +
      "\nExamples:\n"
      "  softib up\n"
      "  softib up --nodes 4 --hcas 2\n"
      "  softib up --topology fat-tree:hcas=16,ports=8\n"
      "  softib up --nodes server,client --fabric lab");
  command.callback([options] { up(*options); });
}

}  // namespace ib::softib
