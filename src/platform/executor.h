// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Executor: runs dispatch-level work, one piece at a time, and has a clock.
// linux/server/event_loop.h implements it, and for tests virtual_executor.h with virtual time.
#pragma once

#include "base/time.h"

#include <functional>
#include <memory>
#include <utility>

namespace ib::platform {

// A piece of work with a due time. Destroying it cancels the work (which may destroy its own timer
// while it runs). On the executor's thread only.
class Timer {
 public:
  virtual ~Timer() = default;
};

class Executor {
 public:
  using Work = std::function<void()>;

  virtual ~Executor() = default;

  // Runs `work` on the executor's thread, at dispatch level, after what was posted before. Any
  // thread; never from inside post() itself.
  virtual void post(Work work) = 0;

  // The same for work that other work may make needless: it may run a moment later, when there is
  // no other. Executor's thread.
  virtual void post_late(Work work) { post(std::move(work)); }

  // Runs `work` once, not before `when`; a time in the past means soon. Executor's thread.
  [[nodiscard]] virtual std::unique_ptr<Timer> at(Instant when, Work work) = 0;

  virtual Instant now() = 0;  // monotonic
};

}  // namespace ib::platform
