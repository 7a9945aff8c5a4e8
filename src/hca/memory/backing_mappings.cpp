// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/backing_mappings.h"

#include <algorithm>

namespace ib::hca {

std::byte* BackingMappings::map(const KeyEntry& region, std::uint64_t address,
                                std::uint64_t length) {
  const auto& adopted = region.adopted;
  if (!in_range(address, length, adopted.address, adopted.length)) return nullptr;
  const std::uint32_t index = adopted.backing;
  const std::uint32_t generation = adopted.backing_generation;
  if (index >= kMaxBackings) return nullptr;
  Mapping& mapping = mappings_[index];
  std::byte* base = mapping.current(generation);
  if (base == nullptr) base = map_slow(mapping, index, generation);
  if (base == nullptr) return nullptr;
  const std::uint64_t offset = adopted.offset + (address - adopted.address);
  return in_range(offset, length, 0, mapping.size) ? base + offset : nullptr;
}

std::byte* BackingMappings::map_slow(Mapping& mapping, std::uint32_t index,
                                     std::uint32_t generation) {
  std::uint64_t size = 0;
  std::byte* base = host_.map_backing(index, generation, size);
  if (base == nullptr) return nullptr;
  // The host serialises map_backing per backing and returns the same mapping to every caller.
  if (mapping.generation.load(std::memory_order_relaxed) != generation) {
    // First: who finds the new generation does not find the old place.
    mapping.base.store(nullptr, std::memory_order_relaxed);
    mapping.generation.store(generation, std::memory_order_release);
  }
  mapping.size = size;
  mapping.base.store(base, std::memory_order_release);
  return base;
}

std::byte* BackingMappings::find(const KeyEntry& region, std::uint64_t address,
                                 std::uint64_t length) const {
  const auto& adopted = region.adopted;
  const std::uint32_t index = adopted.backing;
  if (index >= kMaxBackings || !in_range(address, length, adopted.address, adopted.length)) {
    return nullptr;
  }
  const Mapping& mapping = mappings_[index];
  std::byte* base = mapping.current(adopted.backing_generation);
  if (base == nullptr) return nullptr;
  const std::uint64_t offset = adopted.offset + (address - adopted.address);
  return in_range(offset, length, 0, mapping.size) ? base + offset : nullptr;
}

void BackingMappings::forget(std::uint32_t index, std::uint32_t generation) {
  if (index >= kMaxBackings) return;
  Mapping& mapping = mappings_[index];
  if (mapping.generation.load(std::memory_order_relaxed) != generation) return;
  mapping.base.store(nullptr, std::memory_order_release);
}

CachedRemote BackingMappings::cache(const KeyEntry& region, std::uint32_t key) const {
  const auto& id = region.id;
  const auto& adopted = region.adopted;
  const std::uint32_t backing = adopted.backing;
  if (backing >= kMaxBackings) return {};
  const Mapping& mapping = mappings_[backing];
  CachedRemote known{
      {{key, id.access}}, &mapping.base, mapping.current(adopted.backing_generation)};
  // The adopted part of the region: whole pages.
  const std::uint64_t first = std::max(id.address, adopted.address);
  const std::uint64_t end = std::min(id.address + id.length, adopted.address + adopted.length);
  const std::uint64_t offset = adopted.offset + (first - adopted.address);
  if (known.base == nullptr || end <= first || !in_range(offset, end - first, 0, mapping.size)) {
    return {};
  }
  known.first = id.iova + (first - id.address);
  known.length = end - first;
  known.bytes = known.base + offset;
  return wraps_around(known.first, known.length) ? CachedRemote{} : known;
}

}  // namespace ib::hca
