// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counting a message at one end of a queue pair: its counters have one writer.
#pragma once

#include <atomic>
#include <cstdint>

namespace ib::hca {

template <class Counters>
void count_message(Counters& line, std::uint64_t bytes) {
  line.messages.store(line.messages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  line.bytes.store(line.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

}  // namespace ib::hca
