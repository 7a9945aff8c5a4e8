// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventLoop: the reactor of softibd. One thread runs it, at dispatch level; nothing that it calls
// may block. Uses no CPU while idle.
#pragma once

#include "platform/executor.h"

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <thread>

namespace asio {
class io_context;
}

namespace ib::os {

class EventLoop : public platform::Executor {
 public:
  EventLoop();
  ~EventLoop() override;  // work that did not run is dropped

  // Runs until stop(); on the calling thread, at dispatch level.
  void run();
  void stop();  // any thread

  bool runs_here() const { return thread_.load() == std::this_thread::get_id(); }

  // Calls `work` on the loop's thread whenever one of these signals comes. For programs, not for
  // libraries: a process has only one disposition per signal. To be called once.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> work);

  void post(Work work) override;
  std::unique_ptr<platform::Timer> at(Instant when, Work work) override;
  Instant now() override;

  asio::io_context& context();  // for the sockets of this layer

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<std::thread::id> thread_{};
};

}  // namespace ib::os
