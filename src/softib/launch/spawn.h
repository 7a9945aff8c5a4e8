// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making a softibd process without ties: no child of this process (which is about to become the
// user's program and must not have a strange child), no terminal, none of our descriptors (else
// `softib run x | cat` would wait for the daemon), all processors, no softib environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace ib::softib {

struct DaemonStart {
  bool ready = false;
  std::string failure;              // the reason of a failure, in words
  bool explained = false;           // the words are softibd's own
  std::size_t log_size_before = 0;  // its lines about this start are behind this
};

// Executes `words` and waits until it reports on the descriptor of "--ready-fd N" (appended here)
// that it is ready, or ends, or `limit` is over (then it is killed). Its output is added to
// `log`. Throws CliError if no process can be made.
DaemonStart start_daemon(std::vector<std::string> words, const std::string& log,
                         std::chrono::seconds limit);

// Resource limits of this process that may keep softibd or its clients from working, in words.
std::string tight_limits();

}  // namespace ib::softib
