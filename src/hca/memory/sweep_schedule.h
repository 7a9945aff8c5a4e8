// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SweepSchedule: when a client queries softibd about the files of its peers (their adopted pages,
// the pipes of their completion channels), to let go those that are gone: half a second after a
// connection has ended (the peer destroys its part at about the same time), when the files have
// become twice as many, and as long as there are some, after pauses that grow to a minute. The
// sweeps take at most a small part of the time, but for those that growth demands.
//
// One thread, but for many().
#pragma once

#include "base/time.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>

namespace ib::hca {

class SweepSchedule {
 public:
  static constexpr Duration kNever = std::chrono::hours(24);
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::minutes(1);
  static constexpr int kTimesLonger = 20;  // a pause than the sweep before it
  static constexpr std::size_t kFew = 16;  // files that may gather before a sweep

  // So many files, or more, have not been planned for: until() is to be called. Any thread.
  std::size_t many() const { return many_.load(std::memory_order_relaxed); }

  // Returns the time to the next sweep, zero if it is due. `peer_may_go`: a connection has ended
  // since the last call.
  Duration until(Instant now, std::size_t files, bool peer_may_go) {
    if (files != 0 && (peer_may_go || !next_)) {
      pause_ = kFirstPause;
      const Instant soon = std::max(now + pause_, earliest_);
      next_ = next_ ? std::min(*next_, soon) : soon;
    }
    const std::size_t enough = std::max(many(), kFew);
    if (files >= enough) next_ = now;
    many_.store(enough, std::memory_order_relaxed);
    return next_ ? std::max(*next_ - now, Duration::zero()) : kNever;
  }

  // A sweep took from `begin` to `end`.
  void swept(Instant begin, Instant end, std::size_t left) {
    many_.store(left == 0 ? 1 : std::max(kFew, 2 * left), std::memory_order_relaxed);
    earliest_ = end + kTimesLonger * (end - begin);
    pause_ = std::min(2 * pause_, kLongestPause);
    next_.reset();
    if (left != 0) next_ = std::max(end + pause_, earliest_);
  }

 private:
  std::atomic<std::size_t> many_{1};
  std::optional<Instant> next_;
  Instant earliest_{};
  Duration pause_ = kFirstPause;
};

}  // namespace ib::hca
