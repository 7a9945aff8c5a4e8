// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers for messages that an outsider cannot foresee easily and that do not come again soon: a
// permutation of 1, 2, 3 ... that depends on a seed.
#pragma once

#include <cstdint>

namespace ib::cm {

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : seed_(seed) {}
  // Each step can be undone, so different counts give different numbers.
  std::uint32_t next() {
    std::uint32_t x = ++count_;
    for (unsigned round = 0; round < 3; ++round) {
      x += static_cast<std::uint32_t>(seed_ >> (16 * round));
      x *= 0x9e37'79b1u;
      x ^= x >> 15;
    }
    return x;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t count_ = 0;
};

}  // namespace ib::cm
