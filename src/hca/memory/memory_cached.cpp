// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory for the fast path (requester_fast.h): where it is, if it can be touched at once, and the
// facts about it that may be cached.
#include "hca/memory/memory_plane.h"

#include <algorithm>

namespace ib::hca {

// The entry of a key of another process, if the responder grants this by it; or nullptr.
const KeyEntry* MemoryPlane::granted(const Responder& responder, std::uint32_t key,
                                     std::uint64_t address, std::uint64_t length,
                                     std::uint32_t access) const {
  const KeyEntry* entry = arena_.key(key_index(key));
  if (entry == nullptr || key == 0) return nullptr;
  const auto& id = entry->id;
  const bool good = id.state.load(std::memory_order_acquire) == KeyState::Valid &&
                    id.key.load(std::memory_order_acquire) == key &&
                    id.owner_slot == responder.owner_slot && id.owner_slot != slot_ &&
                    id.pd == responder.pd && (id.access & access) == access &&
                    in_range(address, length, id.iova, id.length);
  return good ? entry : nullptr;
}

std::byte* MemoryPlane::map_remote(const Responder& responder, std::uint32_t key,
                                   std::uint64_t address, std::uint64_t length,
                                   std::uint32_t access) const {
  const KeyEntry* entry = granted(responder, key, address, length, access);
  if (entry == nullptr) return nullptr;
  const auto& id = entry->id;
  const std::uint64_t in_owner = id.address + (address - id.iova);
  if (id.kind == KeyKind::DeviceMemory) return arena_.heap(in_owner, length);
  const auto& adopted = entry->adopted;
  if (id.kind != KeyKind::Region || adopted.backing >= kMaxBackings ||
      !in_range(in_owner, length, adopted.address, adopted.length)) {
    return nullptr;
  }
  const Mapping& mapping = mappings_[adopted.backing];
  std::byte* base = mapping.base.load(std::memory_order_acquire);
  if (base == nullptr ||
      mapping.generation.load(std::memory_order_relaxed) != adopted.backing_generation) {
    return nullptr;
  }
  const std::uint64_t offset = adopted.offset + (in_owner - adopted.address);
  return in_range(offset, length, 0, mapping.size) ? base + offset : nullptr;
}

CachedLocal MemoryPlane::cache_local(std::uint32_t key, std::uint32_t pd) const {
  const std::uint64_t as_of = local_keys_.hidden();  // before the look
  const LocalKey* local = local_keys_.find(key);
  if (local == nullptr || local->pd != pd || local->kind > KeyKind::DeviceMemory ||
      local->is_doubtful() || wraps_around(local->iova, local->length)) {
    return {};
  }
  return {{{key, local->access, local->iova, local->length}, local->address}, as_of};
}

CachedRemote MemoryPlane::cache_once(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                     std::uint32_t access, std::byte* bytes) {
  static const std::atomic<std::byte*> always{nullptr};
  return {{{key, access, address, length}, bytes}, &always, nullptr};
}

CachedRemote MemoryPlane::cache_remote(std::uint32_t key) const {
  const KeyEntry* entry = arena_.key(key_index(key));
  if (entry == nullptr || entry->id.kind != KeyKind::Region) return {};
  const auto& id = entry->id;
  const auto& adopted = entry->adopted;
  const std::uint32_t backing = adopted.backing;
  if (backing >= kMaxBackings) return {};
  const Mapping& mapping = mappings_[backing];
  CachedRemote known{{{key, id.access}}, &mapping.base, mapping.base.load()};
  // The adopted part of the region: whole pages.
  const std::uint64_t first = std::max(id.address, adopted.address);
  const std::uint64_t end = std::min(id.address + id.length, adopted.address + adopted.length);
  const std::uint64_t offset = adopted.offset + (first - adopted.address);
  if (known.base == nullptr || end <= first || !in_range(offset, end - first, 0, mapping.size) ||
      mapping.generation.load(std::memory_order_relaxed) != adopted.backing_generation) {
    return {};
  }
  known.first = id.iova + (first - id.address);
  known.length = end - first;
  known.bytes = known.base + offset;
  return wraps_around(known.first, known.length) ? CachedRemote{} : known;
}

CachedFar MemoryPlane::cache_far(const Responder& responder, std::uint32_t key,
                                 std::uint64_t address, std::uint64_t length,
                                 std::uint32_t access) const {
  const KeyEntry* entry = granted(responder, key, address, length, access);
  if (entry == nullptr || entry->id.kind != KeyKind::Region) return {};
  if (vm_pid(responder.owner_slot) == kNone) return {};
  if (entry->adopted.length != 0) return {};  // the slow path maps what is adopted
  const auto& id = entry->id;
  const CachedFar known{{key, id.access, id.iova, id.length}, responder.owner_slot, id.address};
  return wraps_around(known.first, known.length) ? CachedFar{} : known;
}

bool MemoryPlane::copy_far(const CachedFar& known, std::uint64_t address, std::byte* local,
                           std::uint64_t n, BounceOp op) {
  Stretch there;
  there.kind = Stretch::Kind::Remote;
  there.key = known.key;
  there.slot = known.slot;
  there.address = known.address + (address - known.first);
  there.length = n;
  return remote_copy(there, 0, local, n, op).ok();
}

}  // namespace ib::hca
