// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// BackingMappings: where this process has mapped the pages that its peers have adopted (path 1 of
// docs/design/0001), by the index of their backing.
#pragma once

#include "base/sparse_table.h"
#include "hca/layout/layout.h"
#include "hca/memory/cached_key.h"
#include "hca/memory/poster_host.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::hca {

class BackingMappings {
  struct Mapping {
    std::atomic<std::byte*> base;
    Relaxed<std::uint64_t> size;  // of what is at `base`; threads that map it store the same
    std::atomic<std::uint32_t> generation;

    // Returns the place of this generation, or nullptr. Acquire twice: after the store of the
    // generation the old place is gone, and after that of the new place its size is there.
    std::byte* current(std::uint32_t wanted) const {
      if (generation.load(std::memory_order_acquire) != wanted) return nullptr;
      return base.load(std::memory_order_acquire);
    }
  };

 public:
  using Table = SparseTable<Mapping, kMaxBackings>;

  explicit BackingMappings(PosterHost& host) : host_(host) {}
  BackingMappings(const BackingMappings&) = delete;
  BackingMappings& operator=(const BackingMappings&) = delete;
  // Returns false if there was no room for the table; then no other call is allowed.
  bool valid() const { return mappings_.valid(); }

  // Returns the place of [address, address + length) of a peer's memory, or nullptr if it is not in
  // the adopted pages of that region. find() does not map what is not mapped yet.
  std::byte* map(const KeyEntry& region, std::uint64_t address, std::uint64_t length);
  std::byte* find(const KeyEntry& region, std::uint64_t address, std::uint64_t length) const;
  // The mapping is about to end. Afterwards no thread of this process finds it, once those that are
  // executing have left.
  void forget(std::uint32_t index, std::uint32_t generation);
  // Returns the cacheable facts about a region that find() has just found.
  CachedRemote cache(const KeyEntry& region, std::uint32_t key) const;

 private:
  std::byte* map_slow(Mapping& mapping, std::uint32_t index, std::uint32_t generation);

  PosterHost& host_;
  Table mappings_;
};

}  // namespace ib::hca
