// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/in_process_daemon.h"

#include "base/assert.h"
#include "platform/level.h"
#include "softibd/daemon.h"

#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>

namespace ib::softib {

struct InProcessDaemon::State {
  ~State() {
    daemon.reset();
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
  }
  std::string directory;
  std::unique_ptr<DaemonLog> log;
  std::unique_ptr<Daemon> daemon;
  std::thread thread;
  std::atomic<bool> ended = false;
  DaemonExit exit = DaemonExit::Ended;
};

InProcessDaemon::InProcessDaemon(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<InProcessDaemon>> InProcessDaemon::start(DaemonOptions options,
                                                                std::string& reason) {
  auto state = std::make_unique<State>();
  std::string name = std::filesystem::temp_directory_path() / "softib-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    reason = "mkdtemp: " + std::error_code(errno, std::generic_category()).message();
    return Status::IoError;
  }
  state->directory = name;
  options.runtime_dir = name;
  if (options.log.empty()) {
    state->log = no_log();
  } else {
    auto log = open_log(options.log, false, reason);
    if (!log) return log.error();
    state->log = *std::move(log);
  }
  auto daemon = Daemon::create(options, *state->log, reason);
  if (!daemon) return daemon.error();
  state->daemon = *std::move(daemon);
  state->thread = std::thread([&s = *state] {
    s.exit = s.daemon->run();
    s.ended = true;
  });
  return std::unique_ptr<InProcessDaemon>(new InProcessDaemon(std::move(state)));
}

Result<std::unique_ptr<InProcessDaemon>> InProcessDaemon::start(std::string& reason) {
  DaemonOptions options;
  options.keep = true;
  return start(std::move(options), reason);
}

InProcessDaemon::~InProcessDaemon() {
  IB_ASSERT(stop() == DaemonExit::Ended);  // else a driver keeps requests
}

const std::string& InProcessDaemon::socket_path() const {
  return state_->daemon->socket_path();
}

const std::string& InProcessDaemon::runtime_dir() const {
  return state_->directory;
}

void InProcessDaemon::on_loop(const std::function<void()>& work) {
  require_passive("InProcessDaemon::on_loop");
  std::promise<void> done;
  state_->daemon->loop().post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

al::System& InProcessDaemon::access_layer() {
  return state_->daemon->devices().access_layer();
}

services::Gsi& InProcessDaemon::gsi() {
  return state_->daemon->devices().gsi();
}

DaemonExit InProcessDaemon::stop() {
  require_passive("InProcessDaemon::stop");
  if (state_->thread.joinable()) {
    state_->daemon->stop("the test is over");
    state_->thread.join();
  }
  return state_->exit;
}

bool InProcessDaemon::has_ended() const {
  return state_->ended;
}

}  // namespace ib::softib
