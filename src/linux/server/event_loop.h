// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventLoop: the reactor of softibd. One thread runs it, at dispatch level; nothing that it calls
// may block. Uses no CPU while idle.
#pragma once

#include "platform/executor.h"

#include <atomic>
#include <cstddef>
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

  // Something in shared memory that may change without an event of the kernel's: the loop looks at
  // it for as long as it polls anyway. The loop's thread.
  class Watched {
   public:
    // Returns true if there was work. It may watch() again, and be destroyed.
    virtual bool look() = 0;
    // false: a look follows, and then the other side has to wake the loop.
    virtual void set_watched(bool on) = 0;

   protected:
    ~Watched() = default;
  };
  static constexpr std::size_t kMostWatched = 8;

  // Runs until stop(); on the calling thread, at dispatch level.
  void run();
  void stop();  // any thread

  bool runs_here() const { return thread_.load() == std::this_thread::get_id(); }

  // Calls `work` on the loop's thread whenever one of these signals comes. For programs, not for
  // libraries: a process has only one disposition per signal. To be called once.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> work);

  // Until the loop sleeps the next time; nothing if it watches kMostWatched others.
  void watch(Watched& one);
  void unwatch(const Watched& one);  // before it is destroyed
  // Nothing more will come from what it watches before this core has been yielded.
  void yield_soon();

  void post(Work work) override;
  void post_late(Work work) override;
  std::unique_ptr<platform::Timer> at(Instant when, Work work) override;
  Instant now() override;

  asio::io_context& context();  // for the sockets of this layer

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::atomic<std::thread::id> thread_{};
};

}  // namespace ib::os
