// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// VirtualExecutor: the test runs its work and moves its clock.
#pragma once

#include "platform/executor.h"
#include "platform/level.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

namespace ib::platform {

class VirtualExecutor final : public Executor {
 public:
  void post(Work work) override { posted_.push_back(std::move(work)); }
  std::unique_ptr<Timer> at(Instant when, Work work) override {
    auto alive = std::make_shared<bool>(true);
    timers_.emplace(when, Entry{alive, std::move(work)});
    return std::make_unique<Handle>(std::move(alive));
  }
  Instant now() override { return now_; }

  // Runs everything that is due within `span`.
  void advance(Duration span) {
    const Instant until = now_ + span;
    while (step(until)) {}
    now_ = until;
  }
  // Runs one piece of work that is due until then, if there is one.
  bool step(Instant until) {
    const LevelGuard dispatch(Level::Dispatch);
    if (!posted_.empty()) {
      const Work work = std::move(posted_.front());
      posted_.pop_front();
      work();
      return true;
    }
    if (timers_.empty() || timers_.begin()->first > until) return false;
    now_ = std::max(now_, timers_.begin()->first);
    const Entry entry = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    if (*entry.alive) entry.work();
    return true;
  }

 private:
  struct Entry {
    std::shared_ptr<bool> alive;
    Work work;
  };
  struct Handle final : Timer {
    explicit Handle(std::shared_ptr<bool> a) : alive(std::move(a)) {}
    ~Handle() override { *alive = false; }
    std::shared_ptr<bool> alive;
  };
  Instant now_{std::chrono::seconds(1)};
  std::deque<Work> posted_;
  std::multimap<Instant, Entry> timers_;
};

}  // namespace ib::platform
