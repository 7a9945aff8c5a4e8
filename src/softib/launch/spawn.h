// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making a softibd process that belongs to nobody: no child of ours (we are about to become the
// user's program, which must not find a strange child), no terminal, none of our descriptors
// (else `softib run x | cat` would wait for the daemon), all processors, no softib environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace ib::softib {

struct DaemonStart {
  bool ready = false;
  std::string failure;              // why it did not come up, in words
  bool explained = false;           // the words are softibd's own
  std::size_t log_size_before = 0;  // what it says of this start is behind this
};

// Executes `words` and waits until it is ready, as it says on the descriptor that
// "--ready-fd N", appended here, names; or ends; or `patience` is over (then it is killed). Its
// output is added to `log`. Throws CliError if there is no process to be had.
DaemonStart start_daemon(std::vector<std::string> words, const std::string& log,
                         std::chrono::seconds patience);

// Resource limits of this process that may keep softibd or its clients from working, in words.
std::string tight_limits();

}  // namespace ib::softib
