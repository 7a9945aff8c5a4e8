// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#pragma once

#include <cstdint>

namespace ib::ipoib {

// The finalizer of SplitMix64: spreads the bits of a counter or a hash.
constexpr std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e37'79b9'7f4a'7c15;
  value = (value ^ value >> 30) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ value >> 27) * 0x94d0'49bb'1331'11eb;
  return value ^ value >> 31;
}

}  // namespace ib::ipoib
