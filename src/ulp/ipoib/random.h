// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random delays from a seed, so that a run can be repeated.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/packets/hash.h"

#include <cstdint>

namespace ib::ipoib {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t number() { return scramble(state_ += 0x9e37'79b9'7f4a'7c15); }
  // In [0, most].
  Duration up_to(Duration most) {
    const auto count = static_cast<std::uint64_t>(most.count());
    return Duration(static_cast<Duration::rep>(number() % (count + 1)));
  }
  // The delay before attempt `attempts` + 1: doubled with each, no longer than `longest`, of which
  // up to a quarter is random.
  Duration back_off(Duration first, Duration longest, std::uint32_t attempts) {
    Duration delay = first;
    for (std::uint32_t i = 1; i < attempts && delay < longest; ++i) delay *= 2;
    if (delay > longest) delay = longest;
    return delay - up_to(delay / 4);
  }

 private:
  std::uint64_t state_;
};

}  // namespace ib::ipoib
