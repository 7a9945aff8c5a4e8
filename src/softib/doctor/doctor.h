// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks of `softib doctor`. Each returns its finding, the cost of a lack and the remedy.
// Checks change nothing; those that could be fatal (a seccomp filter that kills) run in a child
// process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

enum class Level { Ok, Warn, Fail };  // Fail: softib cannot run

struct Finding {
  std::string check;  // also the name in the JSON
  Level level = Level::Ok;
  std::string value;
  std::string cost;  // of the lack; empty if Ok
  std::string fix;
};
using Findings = std::vector<Finding>;

const char* level_name(Level level);

void check_installation(Findings& findings);  // binaries, libraries, runtime directory
void check_kernel(Findings& findings);        // system calls
void check_network(Findings& findings);       // namespaces and TAP devices, for `softib run --net`
void check_limits(Findings& findings);        // resource limits, memory, processors
void check_programs(Findings& findings);      // other adapters, tools to try

// Runs `body` in a child; its result (0 to 100), or nothing if the child was killed.
std::optional<int> in_child(const std::function<int()>& body);

}  // namespace ib::softib
