// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Be<T, N>: an unsigned integer stored as N big-endian bytes, alignment 1, no padding.
// Wire headers are plain structs of these; no code outside this file swaps bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ib {

// std::byteswap is C++23. Written with builtins because g++ 12 does not turn a byte loop into
// bswap.
template <std::unsigned_integral T>
constexpr T to_big_endian(T v) {
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return v;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
}

template <std::unsigned_integral T, std::size_t N = sizeof(T)>
class Be {
  static_assert(N <= sizeof(T));
  using Wide = std::array<std::uint8_t, sizeof(T)>;

 public:
  constexpr Be() = default;
  constexpr Be(T value) {
    const auto wide = std::bit_cast<Wide>(to_big_endian(value));
    std::copy(wide.end() - N, wide.end(), bytes_.begin());
  }
  constexpr operator T() const {
    Wide wide{};
    std::copy(bytes_.begin(), bytes_.end(), wide.end() - N);
    return to_big_endian(std::bit_cast<T>(wide));
  }

 private:
  std::array<std::uint8_t, N> bytes_{};
};

// A one-byte field has no byte order: use std::uint8_t.
using Be16 = Be<std::uint16_t>;
using Be24 = Be<std::uint32_t, 3>;
using Be32 = Be<std::uint32_t>;
using Be64 = Be<std::uint64_t>;

}  // namespace ib
