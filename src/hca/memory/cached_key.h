// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CachedKey and its kinds: facts about a key that the fast path may cache (fast_path.h).
#pragma once

#include "hca/memory/local_keys.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::hca {

// A key that was found to be good for [first, first + length). It is forgotten when the epoch of
// its owner has risen, if it is a peer's.
struct CachedKey {
  std::uint32_t key = 0;  // 0: none
  std::uint32_t access = 0;
  std::uint64_t first = 0;  // first + length does not wrap around
  std::uint64_t length = 0;

  [[gnu::always_inline]] bool grants(std::uint32_t wanted_key, std::uint64_t address,
                                     std::uint64_t n, std::uint32_t wanted_access) const {
    return wanted_key == key && (access & wanted_access) == wanted_access &&
           in_span(address, n, first, length);
  }
};
struct CachedHere : CachedKey {  // of memory that is mapped here
  std::byte* bytes = nullptr;    // of `first`
  std::byte* at(std::uint64_t address) const { return bytes + (address - first); }
};
struct CachedRemote : CachedHere {
  // While *mapping is `base` the pages are there, whatever device memory contains.
  const std::atomic<std::byte*>* mapping = nullptr;
  std::byte* base = nullptr;

  // Returns the place of the bytes, or nullptr if this does not grant them.
  [[gnu::always_inline]] std::byte* map(std::uint32_t wanted_key, std::uint64_t address,
                                        std::uint64_t n, std::uint32_t wanted_access) const {
    const bool good = grants(wanted_key, address, n, wanted_access) &&
                      mapping->load(std::memory_order_acquire) == base;
    return good ? at(address) : nullptr;
  }
};
struct CachedLocal : CachedHere {  // one of this process's own
  std::uint64_t as_of = 0;         // LocalKeys::hidden()
};
// Of a peer's memory that is not adopted.
struct CachedFar : CachedKey {
  std::uint32_t slot = kNone;  // the owner
  std::uint64_t address = 0;   // of `first`, in the owner's memory
};

}  // namespace ib::hca
