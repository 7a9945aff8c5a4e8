// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd as a process: the background, inherited resources, and the report to its starter.
#pragma once

#include "linux/process/client_handle.h"
#include "softibd/daemon_options.h"

#include <optional>
#include <string>
#include <string_view>

namespace ib::softib {

// Signals and limits of a process that serves others. Before any thread exists.
void prepare_process();

// The target of the ready line. In the background: the starting process, too.
class ReadyReport {
 public:
  explicit ReadyReport(platform::NativeHandle to) : to_(std::move(to)) {}
  void ok(const std::string& socket_path) { say("ok " + socket_path); }
  void error(std::string_view text);  // newlines become spaces: the report is one line

 private:
  void say(std::string line);
  platform::NativeHandle to_;
};

// Goes on in a child process in a session of its own. The parent waits for the child's report,
// passes it on to its user and has the exit code for main(); the child gets nothing.
std::optional<int> go_to_background(platform::NativeHandle& report_to);

// Once in the background and ready: releases the starter's terminal and directory.
void let_go_of_starter();

}  // namespace ib::softib
