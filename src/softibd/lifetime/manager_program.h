// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ManagerProgram: OpenSM as a child of softibd, at the first node (`softib up --sm opensm`). It
// ends with softibd, however that ends: an OpenSM whose devices have gone writes its log without
// end.
//
// Its files are in <runtime_dir>/<fabric>.opensm: its log, and what it prints.
#pragma once

#include "base/result.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"

#include <sys/types.h>

#include <memory>
#include <string>

namespace ib::softib {

class ManagerProgram {
 public:
  // To be called by the thread that lives as long as softibd: the system ends the program with it.
  // IoError, AccessDenied: the folder or the process cannot be made.
  static Result<std::unique_ptr<ManagerProgram>> start(const DaemonOptions& options,
                                                       const std::string& node, DaemonLog& log,
                                                       std::string& reason);
  ManagerProgram(const ManagerProgram&) = delete;
  ManagerProgram& operator=(const ManagerProgram&) = delete;
  ~ManagerProgram();  // ends it

  // A child of the process has ended: notes it, if it is this one.
  void on_child_ended();
  pid_t pid() const { return pid_; }
  const std::string& folder() const { return folder_; }
  const std::string& end() const { return end_; }  // how it ended, in words; empty: it runs

 private:
  ManagerProgram(pid_t pid, std::string folder, DaemonLog& log)
      : pid_(pid), folder_(std::move(folder)), log_(log) {}

  pid_t pid_;
  std::string folder_;
  DaemonLog& log_;
  std::string end_;
};

}  // namespace ib::softib
