// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ib::fabric {

// Counters of errors stay at the most that they can say [IBA1 16.1.3.5].
template <class Counter>
void add_saturating(Counter& counter, std::uint32_t more) {
  constexpr std::uint64_t kMost = std::numeric_limits<Counter>::max();
  counter = static_cast<Counter>(std::min(std::uint64_t{counter} + more, kMost));
}

}  // namespace ib::fabric
