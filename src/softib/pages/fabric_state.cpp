// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/fabric_state.h"

#include "setup/cli_error.h"
#include "setup/last_death.h"
#include "setup/runtime_dir.h"
#include "verbs/control_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cstddef>
#include <span>

namespace ib::softib {

namespace {

using verbs::control::StatusIn;

Json ask(ControlClient& client, std::span<const std::byte> in) {
  const bool is_all = in.empty();
  const std::string text = is_all ? client.read_text(verbs::control::Code::Status, in, kLimitOfAll)
                                  : client.read_text(verbs::control::Code::Status, in);
  Json state = Json::parse(text, nullptr, false);
  if (!state.is_object()) {
    throw CliError(Exit::Daemon,
                   fmt::format("softibd (pid {}) answered with something that is no JSON object: "
                               "\"{}\"\n  Is it of the same version as softib?",
                               client.pid(), text.substr(0, 60)));
  }
  return state;
}

// The first of two numbers that is not the wanted one: all are between them.
std::uint64_t other_than(std::uint32_t wanted, const Json& range) {
  for (const Json& number : range) {
    if (number.is_number() && number != wanted) return number.get<std::uint64_t>();
  }
  return wanted;
}

}  // namespace

Json ask_state(ControlClient& client) {
  return ask(client, {});
}

Json ask_state_without_nodes(ControlClient& client) {
  return ask(client, bytes_of(StatusIn{}));
}

Json ask_state_of_node(ControlClient& client, const std::string& node) {
  StatusIn in;
  put_text(in.node, node);
  return ask(client, bytes_of(in));
}

std::optional<std::string> ask_node_named(ControlClient& client, const std::string& name) {
  const bool is_name = !name.empty() && name.size() < StatusIn{}.node.size();
  if (!is_name) return std::nullopt;
  const std::vector<std::string> found = node_names(ask_state_of_node(client, name));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::optional<std::string> ask_node_at(ControlClient& client, std::size_t number) {
  StatusIn in;
  if (number >= in.number) return std::nullopt;
  in.number = static_cast<std::uint32_t>(number);
  const std::vector<std::string> found = node_names(ask(client, bytes_of(in)));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::vector<std::string> node_names(const Json& state) {
  std::vector<std::string> names;
  for (const Json& node : list_of(state, "nodes")) names.push_back(text_of(node, "name"));
  return names;
}

std::string ask_node(ControlClient& client, const std::string& wanted, const std::string& fabric) {
  const std::optional<std::uint32_t> number = wanted.empty() ? 0 : node_number(wanted);
  std::optional<std::string> node = ask_node_named(client, wanted);
  if (!node && number) node = ask_node_at(client, *number);
  // The words for a node that is not there name others.
  return node ? *node : find_node(node_names(ask_state(client)), wanted, fabric);
}

std::size_t node_count(const Json& state) {
  return number_of(state.value("shape", Json()), "nodes");
}

bool is_kept(const Json& state) {
  return state.value("kept", false);
}

std::string shape_difference(const Json& state, const FabricShape& wanted) {
  const Json shape = state.value("shape", Json());
  if (!wanted.nodes.empty() && text_of(shape, "names_digest") != names_digest(wanted.nodes)) {
    return wanted.nodes.size() != node_count(state)
               ? fmt::format("it has {} node(s), not {}", node_count(state), wanted.nodes.size())
               : fmt::format("its nodes are {}", fmt::join(node_names(state), ", "));
  }
  if (!wanted.verify.empty() && text_of(state, "verify") != wanted.verify) {
    return fmt::format("it was not started with --verify={}", wanted.verify);
  }
  // That of the command line; a configuration may give another one to single HCAs.
  if (!wanted.link_layer.empty() && text_of(state, "link_layer") != wanted.link_layer) {
    return fmt::format("its link layer is {}, not {}", text_of(state, "link_layer"),
                       wanted.link_layer);
  }
  const auto differs = [&shape](const std::optional<std::uint32_t>& number, const char* key,
                                const char* what) {
    const std::uint64_t other = number ? other_than(*number, list_of(shape, key)) : 0;
    return number && other != *number ? fmt::format("it has {} {}, not {}", other, what, *number)
                                      : std::string();
  };
  const std::string hcas = differs(wanted.hcas, "hcas_per_node", "HCA(s) per node");
  const bool has_hcas = other_than(0, list_of(shape, "ports_per_hca")) != 0;  // else all are out
  return !hcas.empty() || !has_hcas ? hcas
                                    : differs(wanted.ports, "ports_per_hca", "port(s) per HCA");
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
