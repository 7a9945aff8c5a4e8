// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/environment.h"

#include "softib/launch/defaults.h"
#include "softib/launch/environment_edit.h"
#include "softib/launch/socket_switch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ib::softib {
namespace {

constexpr std::array kOwn = {"SOFTIB_SOCKET",      "SOFTIB_NODE",        "SOFTIB_FABRIC",
                             "SOFTIB_RUNTIME_DIR", "SOFTIB_MEMORY_PATH", "SOFTIB_VERBOSE",
                             "SOFTIB_SOCKETS"};

// The entries of a list whose file name is not `own`.
std::string others(std::string_view list, std::string_view separators, std::string_view own) {
  return kept(list, separators,
              [&](std::string_view entry) { return entry.substr(entry.rfind('/') + 1) != own; });
}

// ld.so: blanks or colons; libibverbs: colons or semicolons.
std::string other_preloads(std::string_view list) {
  return others(others(others(list, " :", kPreloadName), ":", kStreamsName), ":", kRsocketsName);
}
std::string other_drivers(std::string_view list) {
  return others(list, ":;", kProviderStem);
}

// Before the preload library: its descriptors are not files of softib.
void switch_sockets(Environment& environment, const Installation& installation,
                    const std::string& sockets) {
  unset(environment, "SOFTIB_SOCKETS");
  if (sockets.empty()) return;
  const SocketSwitch wanted = parse_socket_switch(sockets);
  set(environment, "LD_PRELOAD",
      before(installation.sockets(wanted.over_rsockets), *find(environment, "LD_PRELOAD")));
  set(environment, "SOFTIB_SOCKETS", wanted.ranges);
}

std::string shell_quoted(std::string_view value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

}  // namespace

Environment current_environment() {
  Environment result;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

std::vector<std::string> as_words(const Environment& environment) {
  std::vector<std::string> result;
  result.reserve(environment.size());
  for (const auto& [name, value] : environment) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

Environment compose_environment(const Environment& base, const Installation& installation,
                                const ProgramSettings& settings) {
  Environment result = base;
  const std::string* preload = find(result, "LD_PRELOAD");
  set(result, "LD_PRELOAD",
      before(installation.preload(), preload == nullptr ? "" : other_preloads(*preload)));
  switch_sockets(result, installation, settings.sockets);
  const std::string* drivers = find(result, "RDMAV_DRIVERS");
  set(result, "RDMAV_DRIVERS",
      before(installation.provider(), drivers == nullptr ? "" : other_drivers(*drivers)));
  add_defaults(result);
  set(result, "SOFTIB_SOCKET", settings.socket);
  set(result, "SOFTIB_NODE", settings.node);
  // So that `softib status` inside the program means the same fabric.
  set(result, "SOFTIB_FABRIC", settings.fabric);
  set(result, "SOFTIB_RUNTIME_DIR", settings.runtime_dir);
  if (settings.memory_path == "auto") unset(result, "SOFTIB_MEMORY_PATH");
  if (!settings.memory_path.empty() && settings.memory_path != "auto") {
    set(result, "SOFTIB_MEMORY_PATH", settings.memory_path);
  }
  if (settings.verbose) set(result, "SOFTIB_VERBOSE", "1");
  return result;
}

Environment without_softib(const Environment& base) {
  Environment result = base;
  for (const char* name : kOwn) unset(result, name);
  const auto strip = [&](const char* name, std::string (*rest_of)(std::string_view)) {
    std::string* list = find(result, name);
    if (list == nullptr) return;
    *list = rest_of(*list);
    if (list->empty()) unset(result, name);
  };
  strip("LD_PRELOAD", other_preloads);
  strip("RDMAV_DRIVERS", other_drivers);
  remove_defaults(result);
  return result;
}

std::string export_lines(const Environment& base, const Environment& wanted) {
  std::string text;
  for (const auto& entry : wanted) {
    if (std::find(base.begin(), base.end(), entry) != base.end()) continue;
    text += "export " + entry.first + "=" + shell_quoted(entry.second) + "\n";
  }
  return text;
}

}  // namespace ib::softib
