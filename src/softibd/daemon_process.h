// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd as a process: the background, what it inherits, and telling its starter how it went.
#pragma once

#include "linux/client/client_handle.h"
#include "softibd/daemon_options.h"

#include <optional>
#include <string>
#include <string_view>

namespace ib::softib {

// Signals and limits of a process that serves others. Before any thread exists.
void prepare_process();

// Where the ready line goes. In the background: to the process that started us, too.
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

// Once in the background and ready: nothing of the starter is kept, neither terminal nor directory.
void let_go_of_starter();

}  // namespace ib::softib
