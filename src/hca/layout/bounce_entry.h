// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory (layout.h): bounce buffers.
#pragma once

#include "hca/layout/layout.h"

namespace ib::hca {

// Bounce buffers of a process (path 3 of docs/design/0001): the service thread of the process
// copies between them and its memory for its peers.
enum class BounceState : std::uint32_t {
  Free = 0,
  Claimed = 1,
  Submitted = 2,
  Done = 3,
  Running = 4
};
enum class BounceOp : std::uint32_t { Read = 1, Write = 2, CmpSwap = 3, FetchAdd = 4 };
inline constexpr std::uint32_t kBounceBytes = 32 * 1024;
struct BounceEntry {
  struct alignas(kLine) {
    SharedEnum<BounceState> state;
    Shared32 requester_slot;  // who claimed it
    BounceOp op = BounceOp::Read;
    std::uint32_t key = 0;      // the region, by its owner's key
    std::uint64_t address = 0;  // in the owner's memory
    std::uint32_t length = 0;
    std::uint32_t status = 0;    // 0: done; else verbs::control::Cause
    std::uint64_t operand1 = 0;  // add or compare; result of atomics comes back in it
    std::uint64_t operand2 = 0;  // swap
  } request;
  std::array<std::byte, kBounceBytes> data;
};
inline constexpr std::uint32_t kBouncesPerSlot = 4;

}  // namespace ib::hca
