// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InProcessDaemon: a whole softibd on a thread of a test, with a runtime directory of its own, so
// that sanitizers see both sides and tests need no processes. Clients use socket_path().
#pragma once

#include "base/result.h"
#include "softibd/daemon_options.h"

#include <functional>
#include <memory>
#include <string>

namespace ib::al {
struct System;
}

namespace ib::services {
class Gsi;
}

namespace ib::softib {

class InProcessDaemon {
 public:
  // The runtime directory in `options` is ignored; without `keep` it ends like any other.
  static Result<std::unique_ptr<InProcessDaemon>> start(DaemonOptions options, std::string& reason);
  // One node, one HCA, one port; kept.
  static Result<std::unique_ptr<InProcessDaemon>> start(std::string& reason);
  InProcessDaemon(const InProcessDaemon&) = delete;
  InProcessDaemon& operator=(const InProcessDaemon&) = delete;
  ~InProcessDaemon();  // in order; removes the directory

  const std::string& socket_path() const;
  const std::string& runtime_dir() const;
  // Runs `work` on the daemon's thread, at dispatch level, and waits for it. Not once it has ended.
  void on_loop(const std::function<void()>& work);
  // For kernel clients; use it in on_loop().
  al::System& access_layer();
  services::Gsi& gsi();
  // Requests its end (as a client's Shutdown does) and waits.
  DaemonExit stop();
  bool has_ended() const;

 private:
  struct State;
  explicit InProcessDaemon(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ib::softib
