// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LocalMemory: this process's registered memory, as the local side of a transfer and, for a queue
// pair that is connected within the process, as the remote one. Private memory decides about both
// (local_keys.h).
#pragma once

#include "hca/layout/arena.h"
#include "hca/memory/cached_key.h"
#include "hca/memory/local_keys.h"
#include "hca/memory/local_pieces.h"
#include "hca/memory/stretch.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class LocalMemory {
 public:
  LocalMemory(const Arena& arena, std::uint32_t slot) : arena_(arena), slot_(slot) {}

  LocalKeys& keys() { return keys_; }
  const LocalKeys& keys() const { return keys_; }

  // Resolves one local SGE. `access` 0 or access::kLocalWrite.
  Access resolve(const Sge& sge, std::uint32_t pd, std::uint32_t access, LocalPieces& out) const {
    if (sge.length == 0) return {};
    const LocalKey* key = keys_.find(sge.lkey);
    if (key == nullptr) return {Cause::LocalKeyUnknown, false, 0};
    if (key->pd != pd) return {Cause::LocalKeyOtherPd, false, 0};
    if ((key->access & access) != access) return {Cause::LocalKeyAccess, false, key->access};
    if (!in_range(sge.address, sge.length, key->iova, key->length)) {
      return {Cause::LocalKeyRange, false, key->length};
    }
    if (key->kind > KeyKind::DeviceMemory) return resolve_special(*key, sge, access, out);
    out.add(key->address + (sge.address - key->iova), sge.length, key->is_doubtful());
    return {};
  }
  // Resolves [address, address + length) of a key that a peer names, which may be this process.
  // `access`: all of these flags are needed. `pd`: or Responder::kAnyPd.
  Access resolve_as_remote(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                           std::uint32_t access, std::uint32_t pd, Stretch& out) const;

  // The fast path of resolve(): memory that can be touched at once, of an ordinary region or device
  // memory. Returns nullptr if it is refused or not so simple; the slow path decides which.
  [[gnu::always_inline]] std::byte* map(const CachedLocal& known, const Sge& sge,
                                        std::uint32_t access) const {
    const bool good =
        known.grants(sge.lkey, sge.address, sge.length, access) && keys_.hidden() == known.as_of;
    return good ? known.at(sge.address) : nullptr;
  }
  // Returns the cacheable facts about a key of that protection domain; nothing, if its kind is not
  // worth it.
  CachedLocal cache(std::uint32_t key, std::uint32_t pd) const;

 private:
  // Of null and physical regions.
  Access resolve_special(const LocalKey& key, const Sge& sge, std::uint32_t access,
                         LocalPieces& out) const;

  Arena arena_;
  std::uint32_t slot_;
  LocalKeys keys_;
};

}  // namespace ib::hca
