// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of softibd, and its command line.
#pragma once

#include "base/time.h"
#include "fabric/model.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ib::softib {

// Exit codes of softibd; part of its interface (softibd --help).
enum class DaemonExit : int {
  Ended = 0,       // in order: on request, or its last client has gone
  NotStarted = 1,  // the reason is in words on stderr, in the log and on the ready descriptor
  Usage = 2,
  AlreadyUp = 3,  // a fabric of that name is up
  Stuck = 4,      // requested to end, but requests did not; it ended anyway
  Findings = 5,   // the verifier has findings; the log has them
};

// The modes of `--verify` (docs/design/0007).
enum class Verify : std::uint8_t { Off, On, Faults };

// softib's own subnet managers.
struct ManagerOptions {
  bool is_direct = false;                // there are none: softib sets subnets up without them
  std::optional<std::uint8_t> priority;  // nothing: they give way to those of programs
  std::optional<std::uint8_t> lmc;       // nothing: that of the topology
  std::string routing;                   // "auto" and so on (sm/routing/engine.h); empty: auto
  std::string partitions;  // file in the syntax of OpenSM's partitions.conf; empty: none
};

struct DaemonOptions {
  std::string fabric = "default";
  std::string runtime_dir;  // absolute
  std::string topology;     // preset or path; empty: none
  std::string config;       // path of the configuration file; empty: none
  std::string log;          // empty: <runtime_dir>/<fabric>.log
  fabric::Shape shape;
  ManagerOptions managers;
  std::string opensm;  // the program, if it is to manage the subnet; empty: not
  bool keep = false;   // stay without clients
  Duration idle_exit = std::chrono::milliseconds(300);  // go this long after the last client,
  Duration first_client = std::chrono::seconds(10);     // or if the first has not come by then
  std::uint64_t max_memory = 0;                         // bytes; 0: as much as there is room for
  int ready_fd = -1;                                    // gets the ready line
  bool foreground = false;
  Verify verify = Verify::Off;
  std::uint64_t verify_seed = 1;
};

struct ParsedCommandLine {
  bool go_on = false;  // else softibd ends with `exit_code`: help was shown, or the line is wrong
  int exit_code = 0;
  DaemonOptions options;
};

// Prints help, or the mistake.
ParsedCommandLine parse_daemon_options(int argc, const char* const* argv);

}  // namespace ib::softib
