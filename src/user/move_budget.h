// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MoveBudget: how many bytes of its pages a process may move into files, which takes a millisecond
// a MiB. A process that registers its buffers once gets them all moved; one that registers and
// deregisters in a loop spends at most a hundredth of its time on it and uses process_vm otherwise.
#pragma once

#include "base/time.h"

#include <algorithm>
#include <cstdint>

namespace ib::user {

class MoveBudget {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{128} << 20;       // bytes, at the start too
  static constexpr std::uint64_t kPerSecond = std::uint64_t{10} << 20;   // bytes
  static constexpr std::uint64_t kPerRegion = std::uint64_t{64} * 1024;  // what a move costs anyway

  // Returns how many bytes may be moved now.
  std::uint64_t left(Instant now) {
    if (now > last_) {
      const auto elapsed = std::min<Duration>(now - last_, std::chrono::hours(1));
      const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
      const std::uint64_t earned = static_cast<std::uint64_t>(micros) * kPerSecond / 1'000'000;
      // Less than a byte's worth of time counts later.
      if (earned != 0) {
        left_ = std::min(kMost, left_ + earned);
        last_ = now;
      }
    }
    return left_ > kPerRegion ? left_ - kPerRegion : 0;
  }
  void spend(std::uint64_t bytes) { left_ -= std::min(left_, bytes + kPerRegion); }

 private:
  std::uint64_t left_ = kMost;
  Instant last_{};
};

}  // namespace ib::user
