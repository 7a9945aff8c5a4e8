// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/environment.h"

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

std::string* find(Environment& environment, std::string_view name) {
  for (auto& [key, value] : environment) {
    if (key == name) return &value;
  }
  return nullptr;
}

void set(Environment& environment, const std::string& name, const std::string& value) {
  if (std::string* old = find(environment, name)) {
    *old = value;
  } else {
    environment.emplace_back(name, value);
  }
}

void unset(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const auto& entry) { return entry.first == name; });
}

// The entries of a list whose file name is not `own`, separated by ':'.
std::string others(std::string_view list, std::string_view separators, std::string_view own) {
  std::string rest;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry.empty() || entry.substr(entry.rfind('/') + 1) == own) continue;
    if (!rest.empty()) rest += ':';
    rest += entry;
  }
  return rest;
}

std::string before(const std::string& first, const std::string& rest) {
  return rest.empty() ? first : first + ":" + rest;
}

// ld.so: blanks or colons; libibverbs: colons or semicolons.
std::string other_preloads(std::string_view list) {
  return others(others(list, " :", kPreloadName), ":", kSocketsName);
}
std::string other_drivers(std::string_view list) {
  return others(list, ":;", kProviderStem);
}

// gcc's AddressSanitizer insists on being the first library, which the preload library is now. It
// only matters that its allocator comes before others, and the preload library has none.
constexpr std::string_view kAsanOption = "verify_asan_link_order=0";

void let_asan_be_second(Environment& environment) {
  const std::string* options = find(environment, "ASAN_OPTIONS");
  if (options != nullptr && options->find("verify_asan_link_order") != std::string::npos) return;
  set(environment, "ASAN_OPTIONS",
      before(std::string(kAsanOption), options == nullptr ? "" : *options));
}

std::string other_asan_options(std::string_view list) {
  return others(list, ":", kAsanOption);
}

// Threads that share a worker of UCX spin for its lock. Where there are more of them than
// processors, they spin for one whose holder has none, for half a minute at times
// (docs/testing.md); a mutex lets the holder run. A setting of the user's wins.
constexpr const char* kUcxMutex = "UCX_USE_MT_MUTEX";

void let_ucx_sleep(Environment& environment) {
  if (find(environment, kUcxMutex) == nullptr) set(environment, kUcxMutex, "y");
}

// Before the preload library: its descriptors are not files of softib.
void switch_sockets(Environment& environment, const Installation& installation,
                    const std::string& ranges) {
  unset(environment, "SOFTIB_SOCKETS");
  if (ranges.empty()) return;
  set(environment, "LD_PRELOAD", before(installation.sockets(), *find(environment, "LD_PRELOAD")));
  set(environment, "SOFTIB_SOCKETS", ranges);
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
  let_asan_be_second(result);
  let_ucx_sleep(result);
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
  strip("ASAN_OPTIONS", other_asan_options);
  if (const std::string* mutex = find(result, kUcxMutex); mutex != nullptr && *mutex == "y") {
    unset(result, kUcxMutex);
  }
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
