// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/defaults.h"

#include "softib/launch/environment_edit.h"
#include "verbs/virtual_files.h"

#include <array>
#include <fstream>
#include <string_view>

namespace ib::softib {
namespace {

// The registry of the machine, if it has an entry of the user's for an HCA of softib. The one that
// comes with libdapl2 has entries for other adapters only.
std::string registry_of_user(const Environment&) {
  constexpr const char* kFile = "/etc/dat.conf";
  std::ifstream file(kFile);
  for (std::string line; std::getline(file, line);) {
    const bool is_entry = !line.empty() && line[0] != '#';
    if (is_entry && line.find("softib") != std::string::npos) return kFile;
  }
  return {};
}

constexpr std::array kDefaults = {
    // It only matters that its allocator comes before others, and the preload library has none.
    Default{"ASAN_OPTIONS", "verify_asan_link_order=0", DefaultKind::Option, "AddressSanitizer",
            "insists on being the first library, which softib's preload library is"},
    // A thread that spins for a lock whose holder has no processor waits for half a minute at times
    // (docs/testing.md); with a mutex the holder runs.
    Default{"UCX_USE_MT_MUTEX", "y", DefaultKind::Variable, "UCX, MPI",
            "threads that share a worker wait for its lock without spinning"},
    Default{"DAT_OVERRIDE", verbs::kDatConf.data(), DefaultKind::Variable, "uDAPL",
            "a registry with the node's HCAs and addresses (ofa-v2-ib0, ofa-v2-softib0-1 ...)",
            registry_of_user},
};

std::string_view option_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// The entry of the list that sets the option of `value`; empty if there is none.
std::string_view option_in(std::string_view list, std::string_view value) {
  const std::string_view option = option_of(value);
  std::string_view found;
  kept(list, ":", [&](std::string_view entry) {
    if (option_of(entry) == option) found = entry;
    return false;
  });
  return found;
}

// The user's own value of a setting or the file that has it; empty if softib's counts.
std::string choice_of_user(const Environment& environment, const Default& it) {
  if (const std::string* now = find(environment, it.variable)) {
    const bool whole = it.kind == DefaultKind::Variable;
    const std::string_view entry = whole ? *now : option_in(*now, it.value);
    const bool is_set = whole || !entry.empty();
    if (is_set && entry != it.value) return entry.empty() ? "(empty)" : std::string(entry);
    if (is_set) return {};
  }
  return it.file_of_user == nullptr ? std::string() : it.file_of_user(environment);
}

}  // namespace

std::span<const Default> run_defaults() {
  return kDefaults;
}

void add_defaults(Environment& environment) {
  for (const Default& it : kDefaults) {
    if (!choice_of_user(environment, it).empty()) continue;
    const std::string* now = find(environment, it.variable);
    if (it.kind == DefaultKind::Variable || now == nullptr) {
      set(environment, it.variable, it.value);
    } else if (option_in(*now, it.value).empty()) {
      set(environment, it.variable, before(it.value, *now));
    }
  }
}

void remove_defaults(Environment& environment) {
  for (const Default& it : kDefaults) {
    const std::string* now = find(environment, it.variable);
    if (now == nullptr) continue;
    if (it.kind == DefaultKind::Option) {
      const std::string rest =
          kept(*now, ":", [&](std::string_view entry) { return entry != it.value; });
      set(environment, it.variable, rest);
      if (rest.empty()) unset(environment, it.variable);
    } else if (*now == it.value) {
      unset(environment, it.variable);
    }
  }
}

std::vector<SuppliedSetting> supplied_settings(const Environment& environment) {
  std::vector<SuppliedSetting> settings;
  for (const Default& it : kDefaults) settings.push_back({&it, choice_of_user(environment, it)});
  return settings;
}

}  // namespace ib::softib
