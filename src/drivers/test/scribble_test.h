// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the fuzzer of this folder: a process that writes anything into device memory.
#pragma once

#include "base/fuzz_input.h"
#include "drivers/test/driver_world_test.h"
#include "hca/layout/shm_lock.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ib::drivers::test {

template <class T>
std::span<std::byte> memory_of(T* entry, std::size_t most = sizeof(T)) {
  if (entry == nullptr) return {};
  return {reinterpret_cast<std::byte*>(entry), std::min(sizeof(T), most)};
}

inline std::span<std::byte> ring_of(Bench& bench, const Cq* cq) {
  if (cq == nullptr) return {};
  const std::uint64_t bytes = cq->slots * sizeof(hca::Cqe);
  return {bench.arena().heap(cq->ring, bytes), bytes};
}

inline std::span<std::byte> some_memory(Bench& bench, FuzzInput& in, std::uint32_t max_clients) {
  const hca::Arena& arena = bench.arena();
  const std::uint8_t what = in.byte();
  const std::uint32_t index = in.byte() % 8u;
  switch (what % 8) {
    case 0: return memory_of(arena.slot(index % max_clients), 256);
    case 1: return memory_of(arena.bounce(index % max_clients, index / max_clients), 64);
    case 2: return memory_of(arena.cq(index));
    case 3: return memory_of(arena.srq(index));
    case 4: return memory_of(arena.key(index));
    case 5: return ring_of(bench, bench.core().cqs.find(index));
    case 6: return memory_of(arena.qp(index));
    default: return what < 128 ? memory_of(arena.mcast(index)) : memory_of(&arena.header());
  }
}

// Writes anything into device memory that a process can reach.
inline void scribble(Bench& bench, FuzzInput& in, std::uint32_t max_clients) {
  const std::span<std::byte> target = some_memory(bench, in, max_clients);
  if (target.empty()) return;
  const std::size_t offset = in.number(2) % target.size();
  static constexpr std::uint64_t kValues[] = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              5,
                                              6,
                                              ~std::uint64_t{0},
                                              hca::place::kHeap,
                                              hca::kNone,
                                              1u << 31,
                                              hca::kDaemonOwner};
  const std::uint8_t how = in.byte();
  const std::uint64_t value = how < 64 ? in.number(8) : in.one_of(kValues);
  const std::size_t width = std::min(std::size_t{1} << how % 4, target.size() - offset);
  std::memcpy(target.data() + offset, &value, width);
}

}  // namespace ib::drivers::test
