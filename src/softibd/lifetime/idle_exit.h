// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IdleExit: decides that softibd ends because it has no clients.
//
// Thread rule: the loop's thread.
#pragma once

#include "platform/executor.h"
#include "softibd/daemon_options.h"

#include <functional>
#include <memory>
#include <string>

namespace ib::softib {

class IdleExit {
 public:
  // `has_clients`: whether there are any now. `on_idle`: softibd is to end; `why` is for the log.
  IdleExit(platform::Executor& executor, const DaemonOptions& options,
           std::function<bool()> has_clients, std::function<void(const std::string& why)> on_idle)
      : executor_(executor),
        keep_(options.keep),
        idle_exit_(options.idle_exit),
        first_client_(options.first_client),
        has_clients_(std::move(has_clients)),
        on_idle_(std::move(on_idle)) {}

  void begin() { started_ = executor_.now(); }
  // softibd ends: it is not idle any more.
  void end();
  // Some client has attached, now or earlier.
  void on_attached() { had_client_ = true; }
  bool keeps() const { return keep_; }
  void keep(bool on);
  // To be called after each change of what has_clients() returns.
  void consider();

 private:
  platform::Executor& executor_;
  bool keep_;  // stay without clients
  Duration idle_exit_;
  Duration first_client_;
  std::function<bool()> has_clients_;
  std::function<void(const std::string& why)> on_idle_;
  Instant started_{};
  bool had_client_ = false;
  bool ended_ = false;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::softib
