// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Arena: a process's view of device memory, with checked access by index and by offset.
//
// Copyable view; whoever mapped the memory (linux/) keeps it mapped for as long as views exist.
// Every accessor checks its argument: an index or offset out of range gives nullptr.
#pragma once

#include "base/assert.h"
#include "hca/layout/tables.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

// The file behind the mapping. Its true length comes from the system, never from the shared header,
// over which any process may scribble.
class ArenaFile {
 public:
  virtual ~ArenaFile() = default;
  // Bytes that exist; the file is sealed against shrinking, so an old answer stays true.
  std::uint64_t size_at_least(std::uint64_t wanted) {
    const std::uint64_t known = known_.load(std::memory_order_relaxed);
    if (wanted <= known) return known;
    const std::uint64_t now = query_size();
    known_.store(now, std::memory_order_relaxed);
    return now;
  }

 protected:
  virtual std::uint64_t query_size() = 0;

 private:
  std::atomic<std::uint64_t> known_{0};
};

class Arena {
 public:
  Arena() = default;
  // `base`: kArenaSpace bytes of address space, page aligned, over `file`; both outlive the view.
  Arena(std::byte* base, ArenaFile& file) : base_(base), file_(&file) {
    IB_ASSERT(base != nullptr);
  }

  bool valid() const { return base_ != nullptr; }
  ArenaHeader& header() const { return *at<ArenaHeader>(place::kHeader); }
  Shared32& mcast_count() const { return *at<Shared32>(place::kMcastCount); }

  // The lock for remote atomics on `address` of the process in `slot` (shm_lock.h).
  Shared32& atomic_lock(std::uint32_t slot, std::uint64_t address) const {
    const std::uint64_t hash = (address >> 3) * 31 + slot;
    return atomic_lock_at(static_cast<std::uint32_t>(hash % kAtomicLocks));
  }
  Shared32& atomic_lock_at(std::uint32_t i) const {
    IB_ASSERT(i < kAtomicLocks);
    return *at<Shared32>(place::kAtomics + std::uint64_t{i} * kLine);
  }

  ProcessSlot* slot(std::uint32_t i) const {
    return entry<ProcessSlot>(place::kSlots, i, kMaxSlots);
  }
  PortEntry* port(std::uint32_t i) const { return entry<PortEntry>(place::kPorts, i, kMaxPorts); }
  Shared32* lid(std::uint32_t lid) const {
    return entry<Shared32>(place::kLids, lid, kUnicastLids);
  }
  // The index of the port that has this LID; kNone: none has.
  std::uint32_t port_with_lid(std::uint32_t lid_of_port) const {
    const Shared32* at = lid(lid_of_port);
    const std::uint32_t number = at != nullptr ? at->load(std::memory_order_acquire) : 0;
    return number != 0 && number <= kMaxPorts ? number - 1 : kNone;
  }
  // Where a chain of GIDs begins (gid_chain()).
  Shared32& gid_head(std::uint32_t chain) const {
    IB_ASSERT(chain < kGidChains);
    return at<Shared32>(place::kGids)[chain];
  }
  QpEntry* qp(std::uint32_t i) const { return entry<QpEntry>(place::kQps, i, kMaxQps); }
  CqEntry* cq(std::uint32_t i) const { return entry<CqEntry>(place::kCqs, i, kMaxCqs); }
  SrqEntry* srq(std::uint32_t i) const { return entry<SrqEntry>(place::kSrqs, i, kMaxSrqs); }
  KeyEntry* key(std::uint32_t i) const { return entry<KeyEntry>(place::kKeys, i, kMaxKeys); }
  McastEntry* mcast(std::uint32_t i) const {
    return entry<McastEntry>(place::kMcast, i, kMaxMcast);
  }
  // Where a chain of multicast attachments begins (mcast_chain()).
  Shared32& mcast_by_gid(std::uint32_t chain) const {
    IB_ASSERT(chain < kMcastChains);
    return at<Shared32>(place::kMcastByGid)[chain];
  }
  Shared32& mcast_by_lid(std::uint32_t chain) const {
    IB_ASSERT(chain < kMcastChains);
    return at<Shared32>(place::kMcastByLid)[chain];
  }
  BounceEntry* bounce(std::uint32_t slot, std::uint32_t i) const {
    if (slot >= kMaxSlots || i >= kBouncesPerSlot) return nullptr;
    return entry<BounceEntry>(place::kBounce, slot * kBouncesPerSlot + i,
                              kMaxSlots * kBouncesPerSlot);
  }

  WayEntry* way(std::uint32_t i) const { return entry<WayEntry>(place::kWays, i, kMaxWays); }
  // Returns the entry of a way, or nullptr if it has none.
  WayEntry* find_way(WayKey wanted) const {
    const std::uint64_t key = wanted.word();
    const std::uint32_t first = way_place(key);
    for (std::uint32_t i = 0; i < kWaysLookedAt; ++i) {
      WayEntry* const found = way((first + i) % kMaxWays);
      if (found->key.load(std::memory_order_acquire) == key) return found;
    }
    return nullptr;
  }

  // Bytes [offset, offset + length) of the heap, or nullptr if that is not heap. The file never
  // shrinks (sealed), so what was in range once stays mapped.
  std::byte* heap(std::uint64_t offset, std::uint64_t length) const {
    if (offset < place::kHeap || offset > kArenaSpace || length > kArenaSpace - offset)
      return nullptr;
    if (file_->size_at_least(offset + length) < offset + length) return nullptr;
    return base_ + offset;
  }
  std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base_);
  }
  std::byte* base() const { return base_; }

 private:
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  template <class T>
  T* entry(std::uint64_t table, std::uint32_t i, std::uint32_t count) const {
    return i < count ? at<T>(table + std::uint64_t{i} * sizeof(T)) : nullptr;
  }

  std::byte* base_ = nullptr;
  ArenaFile* file_ = nullptr;
};

}  // namespace ib::hca
