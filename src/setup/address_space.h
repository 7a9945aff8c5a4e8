// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The address space (RLIMIT_AS) that softibd and a program of the fabric reserve. Device memory is
// mapped sparse: addresses, not memory.
#pragma once

#include "hca/layout/tables.h"

#include <cstdint>

namespace ib::softib {

inline constexpr std::uint64_t kForCodeAndHeap = std::uint64_t{512} << 20;
// The largest size of device memory.
inline constexpr std::uint64_t kFullAddressSpace = hca::kArenaSpace + kForCodeAndHeap;
// Its tables and the first objects, and as much again. With less than the full space the objects of
// a fabric end sooner.
inline constexpr std::uint64_t kLeastAddressSpace =
    2 * (hca::place::kHeap + hca::kHeapStep) + kForCodeAndHeap;

}  // namespace ib::softib
