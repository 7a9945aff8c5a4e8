// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/remote_keys.h"

namespace ib::hca {

namespace access = verbs::access;

namespace {

bool is_window(const KeyEntry& key) {
  return key.id.kind == KeyKind::Window1 || key.id.kind == KeyKind::Window2;
}

}  // namespace

// The rules of memory windows [IBA1 10.6.7.2]: type 1 belongs to its PD, type 2 to its QP.
Access RemoteKeys::check_window(const KeyEntry& window, const Responder& responder,
                                const KeyEntry*& region) const {
  if (window.id.kind == KeyKind::Window2 && window.id.window_qpn != responder.qpn) {
    return failed(Cause::RemoteKeyOtherPd);
  }
  region = arena_.key(window.id.window_region);
  if (region == nullptr) return failed(Cause::RemoteKeyUnknown);
  const auto state = region->id.state.load(std::memory_order_acquire);
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  if (state != KeyState::Valid) return failed(Cause::RemoteKeyUnknown);
  return {};
}

// Inlined, as resolve() is a step of each request that has no fast path.
[[gnu::always_inline]] inline Access RemoteKeys::find(const Responder& responder, std::uint32_t key,
                                                      std::uint32_t access,
                                                      const KeyEntry*& out) const {
  const KeyEntry* entry = arena_.key(key_index(key));
  if (entry == nullptr || key == 0) return failed(Cause::RemoteKeyUnknown);
  const auto state = entry->id.state.load(std::memory_order_acquire);
  if (entry->id.key.load(std::memory_order_acquire) != key || state == KeyState::Invalid ||
      entry->id.owner_slot != responder.owner_slot) {
    return failed(Cause::RemoteKeyUnknown);
  }
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  if (responder.pd != Responder::kAnyPd && entry->id.pd != responder.pd) {
    return failed(Cause::RemoteKeyOtherPd);
  }
  if ((entry->id.access & access) != access) {
    return failed(Cause::RemoteKeyAccess, entry->id.access);
  }
  out = entry;
  return {};
}

Access RemoteKeys::check(const Responder& responder, std::uint32_t key,
                         std::uint32_t access) const {
  const KeyEntry* entry = nullptr;
  if (const Access found = find(responder, key, access, entry); !found.ok()) return found;
  const KeyEntry* region = entry;
  return is_window(*entry) ? check_window(*entry, responder, region) : Access{};
}

Access RemoteKeys::check(const Responder& responder, std::uint32_t key, std::uint64_t address,
                         std::uint64_t length, std::uint32_t access) const {
  const KeyEntry* entry = nullptr;
  if (const Access found = find(responder, key, access, entry); !found.ok()) return found;
  if (!in_range(address, length, entry->id.iova, entry->id.length)) {
    return failed(Cause::RemoteKeyRange, entry->id.length);
  }
  const KeyEntry* region = entry;
  return is_window(*entry) ? check_window(*entry, responder, region) : Access{};
}

Access RemoteKeys::resolve(const Responder& responder, std::uint32_t key, std::uint64_t address,
                           std::uint64_t length, std::uint32_t access, Stretch& out) {
  const KeyEntry* entry = nullptr;
  if (const Access found = find(responder, key, access, entry); !found.ok()) return found;
  if (!in_range(address, length, entry->id.iova, entry->id.length)) {
    return failed(Cause::RemoteKeyRange, entry->id.length);
  }
  const std::uint64_t in_owner = entry->id.address + (address - entry->id.iova);
  const bool window = is_window(*entry);
  const KeyEntry* region = entry;
  if (window) {
    const Access bound = check_window(*entry, responder, region);
    if (!bound.ok()) return bound;
  }
  if (entry->id.owner_slot == slot_) {
    const std::uint32_t region_key = region->id.key.load(std::memory_order_relaxed);
    if (!window) return own_.resolve_as_remote(key, address, length, access, responder.pd, out);
    const LocalKey* local = own_.keys().find(region_key);
    if (local == nullptr) return failed(Cause::RemoteKeyUnknown);
    // The window names memory as the region's entry does, its region by iova: translate before
    // checking.
    return own_.resolve_as_remote(region_key, in_owner - region->id.address + local->iova, length,
                                  0, local->pd, out);
  }
  return place(*arena_.key(key_index(region->id.key.load(std::memory_order_relaxed))), in_owner,
               length, out);
}

Access RemoteKeys::resolve_receive(const Responder& responder, const Sge& sge, Stretch& out) {
  if (responder.owner_slot == slot_) {
    return own_.resolve_as_remote(sge.lkey, sge.address, sge.length, access::kLocalWrite,
                                  responder.pd, out);
  }
  const KeyEntry* entry = arena_.key(key_index(sge.lkey));
  if (entry == nullptr || sge.lkey == 0) return failed(Cause::RemoteReceiveKey);
  const auto state = entry->id.state.load(std::memory_order_acquire);
  if (entry->id.key.load(std::memory_order_acquire) != sge.lkey || state == KeyState::Invalid ||
      entry->id.owner_slot != responder.owner_slot || entry->id.pd != responder.pd ||
      (entry->id.access & access::kLocalWrite) == 0 ||
      !in_range(sge.address, sge.length, entry->id.iova, entry->id.length)) {
    return failed(Cause::RemoteReceiveKey);
  }
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  return place(*entry, entry->id.address + (sge.address - entry->id.iova), sge.length, out);
}

// Chooses the path to a checked stretch of a peer's region.
Access RemoteKeys::place(const KeyEntry& region, std::uint64_t address, std::uint64_t length,
                         Stretch& out) {
  out.length = length;
  switch (region.id.kind) {
    case KeyKind::Null: out.kind = Stretch::Kind::Zero; return {};
    case KeyKind::DeviceMemory:
      out.kind = Stretch::Kind::Direct;
      out.pointer = arena_.heap(address, length);
      return out.pointer != nullptr ? Access{} : failed(Cause::RemoteKeyRange);
    case KeyKind::Ranges:
      out.kind = Stretch::Kind::Ranges;
      out.slot = region.id.owner_slot;
      out.address = address;
      out.key = region.id.key.load(std::memory_order_relaxed);
      out.ranges =
          reinterpret_cast<const RangeList*>(arena_.heap(region.id.ranges, sizeof(RangeList)));
      return out.ranges != nullptr ? Access{} : failed(Cause::RemoteKeyRange);
    case KeyKind::Region:
    case KeyKind::Window1:
    case KeyKind::Window2: break;
  }
  out.slot = region.id.owner_slot;
  out.address = address;
  out.key = region.id.key.load(std::memory_order_relaxed);
  out.pointer = mappings_.map(region, address, length);
  out.cpu_atomic = out.pointer != nullptr;
  out.kind = out.pointer != nullptr ? Stretch::Kind::Direct : Stretch::Kind::Remote;
  return {};
}

// The entry of a key of another process, if the responder grants this by it; or nullptr.
const KeyEntry* RemoteKeys::granted(const Responder& responder, std::uint32_t key,
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

std::byte* RemoteKeys::map(const Responder& responder, std::uint32_t key, std::uint64_t address,
                           std::uint64_t length, std::uint32_t access) const {
  const KeyEntry* entry = granted(responder, key, address, length, access);
  if (entry == nullptr) return nullptr;
  const auto& id = entry->id;
  const std::uint64_t in_owner = id.address + (address - id.iova);
  if (id.kind == KeyKind::DeviceMemory) return arena_.heap(in_owner, length);
  return id.kind == KeyKind::Region ? mappings_.find(*entry, in_owner, length) : nullptr;
}

CachedRemote RemoteKeys::cache(std::uint32_t key) const {
  const KeyEntry* entry = arena_.key(key_index(key));
  if (entry == nullptr || entry->id.kind != KeyKind::Region) return {};
  return mappings_.cache(*entry, key);
}

CachedRemote RemoteKeys::cache_once(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                    std::uint32_t access, std::byte* bytes) {
  static const std::atomic<std::byte*> always{nullptr};
  return {{{key, access, address, length}, bytes}, &always, nullptr};
}

CachedFar RemoteKeys::cache_far(const Responder& responder, std::uint32_t key,
                                std::uint64_t address, std::uint64_t length,
                                std::uint32_t access) const {
  const KeyEntry* entry = granted(responder, key, address, length, access);
  if (entry == nullptr || entry->id.kind != KeyKind::Region) return {};
  if (!far_.is_in_reach(responder.owner_slot)) return {};
  if (entry->adopted.length != 0) return {};  // the slow path maps what is adopted
  const auto& id = entry->id;
  const CachedFar known{{key, id.access, id.iova, id.length}, responder.owner_slot, id.address};
  return wraps_around(known.first, known.length) ? CachedFar{} : known;
}

}  // namespace ib::hca
