// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Numbers for messages that an outsider cannot foresee easily and that do not come again soon: a
// permutation of 1, 2, 3 ... that depends on a seed.
#pragma once

#include <array>
#include <cstdint>

namespace ib::cm {

class Numbers {
 public:
  // Seeds that differ in one bit give unrelated numbers.
  explicit Numbers(std::uint64_t seed) {
    for (std::uint32_t& key : keys_) {
      seed += 0x9e37'79b9'7f4a'7c15u;
      std::uint64_t x = seed;
      x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9u;
      x = (x ^ x >> 27) * 0x94d0'49bb'1331'11ebu;
      key = static_cast<std::uint32_t>(x >> 32);
    }
  }
  // Each step can be undone, so different counts give different numbers.
  std::uint32_t next() {
    std::uint32_t x = ++count_;
    for (const std::uint32_t key : keys_) {
      x += key;
      x ^= x >> 16;
      x *= 0x9e37'79b1u;
      x ^= x >> 15;
    }
    return x;
  }

 private:
  std::array<std::uint32_t, 4> keys_;
  std::uint32_t count_ = 0;
};

}  // namespace ib::cm
