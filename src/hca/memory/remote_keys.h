// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RemoteKeys: what a key of another process grants to a responder [IBA1 10.6, 9.7.4.1], and by
// which way of docs/design/0001 this process reaches it.
//
// Keys are resolved again for every attempt of a work request, so nothing is remembered across a
// deregistration.
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/backing_mappings.h"
#include "hca/memory/cached_key.h"
#include "hca/memory/far_memory.h"
#include "hca/memory/local_memory.h"
#include "hca/memory/responder.h"
#include "hca/memory/stretch.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class RemoteKeys {
 public:
  // `slot`: of this process, whose memory `own` is.
  RemoteKeys(const Arena& arena, PosterHost& host, std::uint32_t slot, const LocalMemory& own,
             const FarMemory& far)
      : arena_(arena), slot_(slot), own_(own), far_(far), mappings_(host) {}

  BackingMappings& mappings() { return mappings_; }
  const BackingMappings& mappings() const { return mappings_; }

  // Resolves [address, address + length) of a key as the responder grants it.
  // `access`: all of these flags are needed.
  Access resolve(const Responder& responder, std::uint32_t key, std::uint64_t address,
                 std::uint64_t length, std::uint32_t access, Stretch& out);
  // Only whether it grants that, or `access` to all of its memory.
  Access check(const Responder& responder, std::uint32_t key, std::uint64_t address,
               std::uint64_t length, std::uint32_t access) const;
  Access check(const Responder& responder, std::uint32_t key, std::uint32_t access) const;
  // The same for an SGE of a receive that the responder posted.
  Access resolve_receive(const Responder& responder, const Sge& sge, Stretch& out);

  // The fast paths of both: memory of another process that this one can touch at once, of an
  // ordinary region or device memory. Returns nullptr if it is refused or not so simple; the slow
  // path decides which.
  std::byte* map(const Responder& responder, std::uint32_t key, std::uint64_t address,
                 std::uint64_t length, std::uint32_t access) const;
  // Returns the cacheable facts about a key that map() has just reached; nothing, if its kind is
  // not worth it.
  CachedRemote cache(std::uint32_t key) const;
  // That `length` bytes at `address` are `bytes`, which map() has just found, and no more.
  static CachedRemote cache_once(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                 std::uint32_t access, std::byte* bytes);
  // Returns the cacheable facts about a key no page of which is adopted; nothing, if one is, or if
  // the key does not grant this.
  CachedFar cache_far(const Responder& responder, std::uint32_t key, std::uint64_t address,
                      std::uint64_t length, std::uint32_t access) const;

 private:
  // The entry of a key that has these rights for the responder.
  Access find(const Responder& responder, std::uint32_t key, std::uint32_t access,
              const KeyEntry*& out) const;
  const KeyEntry* granted(const Responder& responder, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, std::uint32_t access) const;
  Access check_window(const KeyEntry& window, const Responder& responder,
                      const KeyEntry*& region) const;
  Access place(const KeyEntry& region, std::uint64_t address, std::uint64_t length, Stretch& out);

  Arena arena_;
  std::uint32_t slot_;
  const LocalMemory& own_;
  const FarMemory& far_;
  BackingMappings mappings_;
};

}  // namespace ib::hca
