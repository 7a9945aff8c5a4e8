// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd's log: a file in the runtime directory that is rotated and bounded (3 files of 1 MiB).
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <string_view>

namespace ib::softib {

class DaemonLog {
 public:
  virtual ~DaemonLog() = default;
  virtual void info(std::string_view line) = 0;
  virtual void warn(std::string_view line) = 0;
  virtual void error(std::string_view line) = 0;
};

// `also_stderr`: for a softibd in the foreground.
Result<std::unique_ptr<DaemonLog>> open_log(const std::string& path, bool also_stderr,
                                            std::string& reason);

// For tests.
std::unique_ptr<DaemonLog> no_log();

// In words: "1 node", "2 nodes".
std::string count_of(std::size_t n, const char* what);

}  // namespace ib::softib
