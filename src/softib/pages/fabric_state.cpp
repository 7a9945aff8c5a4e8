// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/fabric_state.h"

#include "setup/cli_error.h"
#include "setup/last_death.h"
#include "setup/runtime_dir.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

namespace ib::softib {

Json ask_state(ControlClient& client) {
  const std::string text = client.read_text(verbs::control::Code::Status);
  Json state = Json::parse(text, nullptr, false);
  if (!state.is_object()) {
    throw CliError(Exit::Daemon,
                   fmt::format("softibd (pid {}) answered with something that is no JSON object: "
                               "\"{}\"\n  Is it of the same version as softib?",
                               client.pid(), text.substr(0, 60)));
  }
  return state;
}

std::vector<std::string> node_names(const Json& state) {
  std::vector<std::string> names;
  for (const Json& node : list_of(state, "nodes")) names.push_back(text_of(node, "name"));
  return names;
}

std::string ask_node(ControlClient& client, const std::string& wanted, const std::string& fabric) {
  return find_node(node_names(ask_state(client)), wanted, fabric);
}

bool is_kept(const Json& state) {
  return state.value("kept", false);
}

std::string shape_difference(const Json& state, const FabricShape& wanted) {
  const std::vector<std::string> nodes = node_names(state);
  if (!wanted.nodes.empty() && wanted.nodes != nodes) {
    return wanted.nodes.size() != nodes.size()
               ? fmt::format("it has {} node(s), not {}", nodes.size(), wanted.nodes.size())
               : fmt::format("its nodes are {}", fmt::join(nodes, ", "));
  }
  if (!wanted.verify.empty() && text_of(state, "verify") != wanted.verify) {
    return fmt::format("it was not started with --verify={}", wanted.verify);
  }
  // That of the command line; a configuration may give another one to single HCAs.
  if (!wanted.link_layer.empty() && text_of(state, "link_layer") != wanted.link_layer) {
    return fmt::format("its link layer is {}, not {}", text_of(state, "link_layer"),
                       wanted.link_layer);
  }
  for (const Json& node : list_of(state, "nodes")) {
    const Json& hcas = list_of(node, "hcas");
    if (wanted.hcas && *wanted.hcas != hcas.size()) {
      return fmt::format("it has {} HCA(s) per node, not {}", hcas.size(), *wanted.hcas);
    }
    for (const Json& hca : hcas) {
      const Json& ports = list_of(hca, "ports");
      if (wanted.ports && *wanted.ports != ports.size()) {
        return fmt::format("it has {} port(s) per HCA, not {}", ports.size(), *wanted.ports);
      }
    }
  }
  return {};
}

ControlClient connect_up(const std::string& fabric) {
  const Surroundings here = Surroundings::of_this_process();
  const std::string dir = choose_runtime_dir(here);
  const FabricFiles files = fabric_files(dir, fabric);
  // A directory that is not there is the usual case of "nothing is up", not an error of its own.
  struct stat s {};
  if (::lstat(dir.c_str(), &s) == 0) prepare_runtime_dir(dir, here.uid);
  if (std::optional<ControlClient> client = ControlClient::connect(files.socket)) {
    return std::move(*client);
  }
  const std::string death = last_death(files.log);
  throw CliError(
      Exit::NotUp,
      fmt::format("fabric \"{}\" is not up ({})\n  Start it with `softib up{}` or `softib run`.",
                  fabric,
                  death.empty() ? "nobody listens on " + files.socket
                                : "softibd crashed: " + death + "; the log: " + files.log,
                  fabric == "default" ? "" : " --fabric " + fabric));
}

void until_down(const std::string& fabric, bool watches, const std::function<void()>& watch) {
  try {
    watch();
  } catch (const CliError& error) {
    if (!watches || error.code() != Exit::Daemon) throw;
    // In order: softibd removes its socket before it closes connections. One that died leaves it.
    const std::string dir = choose_runtime_dir(Surroundings::of_this_process());
    struct stat s {};
    if (::lstat(fabric_files(dir, fabric).socket.c_str(), &s) == 0) throw;
  }
}

std::string text_of(const Json& object, const char* key, const std::string& otherwise) {
  if (!object.is_object() || !object.contains(key)) return otherwise;
  const Json& value = object[key];
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? otherwise : value.dump();
}

std::uint64_t number_of(const Json& object, const char* key, std::uint64_t otherwise) {
  if (!object.is_object() || !object.contains(key)) return otherwise;
  const Json& value = object[key];
  return value.is_number() ? value.get<std::uint64_t>() : otherwise;
}

const Json& list_of(const Json& object, const char* key) {
  static const Json empty = Json::array();
  if (!object.is_object() || !object.contains(key)) return empty;
  const Json& value = object[key];
  return value.is_array() ? value : empty;
}

}  // namespace ib::softib
