// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Partitions of two ports [IBA1 10.9]: limited members of one do not reach each other.
#pragma once

#include "verbs/types.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ib::sa {

constexpr bool is_same_partition(std::uint16_t a, std::uint16_t b) {
  return ((a ^ b) & 0x7fff) == 0;
}
constexpr bool is_valid_pkey(std::uint16_t pkey) {
  return (pkey & 0x7fff) != 0;
}

// The first P_Key of `a` by which it reaches `b`.
inline std::optional<std::uint16_t> common_pkey(std::span<const std::uint16_t> a,
                                                std::span<const std::uint16_t> b) {
  for (const std::uint16_t one : a) {
    if (!is_valid_pkey(one)) continue;
    for (const std::uint16_t other : b) {
      if (verbs::share_partition(one, other)) return one;
    }
  }
  return std::nullopt;
}

// Returns whether `a` reaches `b` in the partition of `pkey`.
inline bool share_pkey(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                       std::uint16_t pkey) {
  if (!is_valid_pkey(pkey)) return false;
  for (const std::uint16_t one : a) {
    if (!is_same_partition(one, pkey)) continue;
    for (const std::uint16_t other : b) {
      if (verbs::share_partition(one, other)) return true;
    }
  }
  return false;
}

// Returns whether a port with this table is a member of the partition, full or limited.
inline bool is_member(std::span<const std::uint16_t> pkeys, std::uint16_t pkey) {
  if (!is_valid_pkey(pkey)) return false;
  for (const std::uint16_t one : pkeys) {
    if (is_same_partition(one, pkey)) return true;
  }
  return false;
}

}  // namespace ib::sa
