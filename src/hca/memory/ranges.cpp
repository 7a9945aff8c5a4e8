// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/ranges.h"

#include "base/address.h"

#include <algorithm>
#include <span>

namespace ib::hca {

// `all.ranges` is of shared memory if it is a peer's: each field is loaded once, then checked.
Access part_of(const Arena& arena, std::uint32_t self, const Stretch& all, std::uint64_t offset,
               Stretch& part) {
  const RangeList& list = *all.ranges;
  const std::uint64_t at = all.address + offset;
  const auto used = std::span(list.range).first(std::min(list.count, verbs::limits::kMaxRanges));
  const auto after = std::upper_bound(
      used.begin(), used.end(), at,
      [](std::uint64_t wanted, const Range& range) { return wanted < range.start; });
  if (after == used.begin()) return failed(Cause::RemoteKeyRange, at);
  const Range range = *(after - 1);
  const std::uint64_t into = at - range.start;
  if (into >= range.length) return failed(Cause::RemoteKeyRange, at);
  part = all;
  part.ranges = nullptr;
  part.address = range.address + into;
  part.length = std::min(all.length - offset, range.length - into);
  part.cpu_atomic = list.kind == KeyKind::DeviceMemory;
  if (list.kind == KeyKind::DeviceMemory) {
    part.kind = Stretch::Kind::Direct;
    part.pointer = arena.heap(part.address, part.length);
    return part.pointer != nullptr ? Access{} : failed(Cause::RemoteKeyRange, at);
  }
  part.kind = all.slot == self ? Stretch::Kind::Direct : Stretch::Kind::Remote;
  if (all.slot == self) part.pointer = pointer_to(part.address);
  return {};
}

}  // namespace ib::hca
