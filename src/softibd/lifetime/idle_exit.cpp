// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/lifetime/idle_exit.h"

#include <algorithm>

namespace ib::softib {

void IdleExit::end() {
  ended_ = true;
  timer_.reset();
}

void IdleExit::keep(bool on) {
  keep_ = on;
  consider();
}

void IdleExit::consider() {
  if (ended_) return;
  timer_.reset();
  if (keep_ || has_clients_()) return;
  Instant when = executor_.now() + idle_exit_;
  // The program that started softibd may still have to connect; tools that only query do not count.
  if (!had_client_) when = std::max(when, started_ + first_client_);
  timer_ = executor_.at(when, [this] {
    // One more turn of the loop: a client may be about to connect.
    executor_.post([this] {
      if (!keep_ && !has_clients_())
        on_idle_(had_client_ ? "the last client has gone" : "no client has come");
    });
  });
}

}  // namespace ib::softib
