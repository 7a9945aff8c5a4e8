// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transfer: how far the request at the head of a send queue has come.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ib::hca {

struct WayEntry;

struct Transfer {
  // The most that one post or progress call moves before it lets the application run on.
  static constexpr std::uint64_t kBudgetBytes = 8ull << 20;

  std::uint64_t moved = 0;   // bytes already at the other side
  std::uint64_t budget = 0;  // bytes that this call may still move
  // Of a datagram that goes through switches to the port of its receiver: counts it at its end.
  WayEntry* way = nullptr;
  // Of a datagram: its packets after the first.
  std::uint32_t more_packets = 0;

  void begin_call() { budget = kBudgetBytes; }
  // Takes the next step of the rest. Returns false if the budget is spent and the rest is for
  // later.
  bool spend(std::uint64_t left, std::uint64_t& step) {
    step = std::min(left, budget);
    budget -= step;
    return step > 0 || left == 0;
  }
};

}  // namespace ib::hca
