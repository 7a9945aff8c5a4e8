// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables of device memory: how many entries each has and where it is. arena.h gives access.
#pragma once

#include "hca/layout/bounce_entry.h"
#include "hca/layout/layout.h"
#include "hca/layout/way_table.h"

#include <cstdint>

namespace ib::hca {

inline constexpr std::uint32_t kMaxSlots = 4096;
inline constexpr std::uint32_t kUnicastLids = 0xc000;  // [IBA1 4.1.3]
inline constexpr std::uint32_t kMaxPorts = kUnicastLids;
inline constexpr std::uint32_t kMaxQps = 1u << 17;
inline constexpr std::uint32_t kMaxCqs = 1u << 17;
inline constexpr std::uint32_t kMaxSrqs = 1u << 15;
inline constexpr std::uint32_t kMaxKeys = 1u << 18;
inline constexpr std::uint32_t kMaxMcast = 4096;
inline constexpr std::uint32_t kAtomicLocks = 256;
inline constexpr std::uint32_t kMaxBackings =
    1u << 16;  // not in device memory: softibd keeps the memfds

// Where the tables are. All sparse: a page costs memory once it is touched.
namespace place {
inline constexpr std::uint64_t kAlign = 1u << 20;
constexpr std::uint64_t after(std::uint64_t start, std::uint64_t count, std::uint64_t size) {
  return (start + count * size + kAlign - 1) / kAlign * kAlign;
}
inline constexpr std::uint64_t kHeader = 0;
inline constexpr std::uint64_t kMcastCount = 4096;  // one Shared32: entries ever used
// Locks for remote atomics on memory that is not mapped: kAtomicLocks lines, a Shared32 in each.
inline constexpr std::uint64_t kAtomics = 8192;
inline constexpr std::uint64_t kMcastByGid = 32768;  // a Shared32 for each chain (control)
inline constexpr std::uint64_t kMcastByLid = kMcastByGid + kMcastChains * sizeof(Shared32);
static_assert(kAtomics + kAtomicLocks * kLine <= kMcastByGid);
inline constexpr std::uint64_t kGids = 256u << 10;  // a Shared32 for each gid_chain() (control)
static_assert(kMcastByLid + kMcastChains * sizeof(Shared32) <= kGids);
static_assert(kGids + kGidChains * sizeof(Shared32) <= kAlign);
inline constexpr std::uint64_t kSlots = kAlign;
inline constexpr std::uint64_t kPorts = after(kSlots, kMaxSlots, sizeof(ProcessSlot));
// By LID: a Shared32, 1 + the index of the port that has it, or 0. (control)
inline constexpr std::uint64_t kLids = after(kPorts, kMaxPorts, sizeof(PortEntry));
inline constexpr std::uint64_t kQps = after(kLids, kUnicastLids, sizeof(Shared32));
inline constexpr std::uint64_t kCqs = after(kQps, kMaxQps, sizeof(QpEntry));
inline constexpr std::uint64_t kSrqs = after(kCqs, kMaxCqs, sizeof(CqEntry));
inline constexpr std::uint64_t kKeys = after(kSrqs, kMaxSrqs, sizeof(SrqEntry));
inline constexpr std::uint64_t kMcast = after(kKeys, kMaxKeys, sizeof(KeyEntry));
inline constexpr std::uint64_t kBounce = after(kMcast, kMaxMcast, sizeof(McastEntry));
inline constexpr std::uint64_t kWays =
    after(kBounce, std::uint64_t{kMaxSlots} * kBouncesPerSlot, sizeof(BounceEntry));
inline constexpr std::uint64_t kHeap = after(kWays, kMaxWays, sizeof(WayEntry));
}  // namespace place
inline constexpr std::uint64_t kArenaSpace = 32ull
                                             << 30;  // address space; the file is as long as needed
inline constexpr std::uint64_t kHeapStep = 64ull << 20;  // the heap grows by this

constexpr std::uint32_t qp_index(std::uint32_t qpn) {
  return qpn & (kMaxQps - 1);
}
constexpr std::uint32_t srq_index(std::uint32_t srqn) {
  return srqn & (kMaxSrqs - 1);
}
constexpr std::uint32_t key_index(std::uint32_t key) {
  return key >> 8;
}

}  // namespace ib::hca
