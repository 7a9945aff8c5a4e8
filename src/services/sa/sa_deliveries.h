// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaDeliveries: calls back soon, in order, and not from inside the call that brings the news.
#pragma once

#include "platform/executor.h"

#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace ib::services {

class SaDeliveries {
 public:
  using Event = std::function<void()>;

  explicit SaDeliveries(platform::Executor& executor) : executor_(executor) {}

  void later(Event event) {
    events_.push_back(std::move(event));
    if (timer_ == nullptr) timer_ = executor_.at(executor_.now(), [this] { deliver(); });
  }

 private:
  void deliver() {
    // Events that come meanwhile wait for their own turn: the loop lives for others, too.
    std::deque<Event> events = std::exchange(events_, {});
    const std::unique_ptr<platform::Timer> done = std::move(timer_);
    for (const Event& event : events) event();
  }

  platform::Executor& executor_;
  std::deque<Event> events_;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::services
