// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/memory/extent.h"

#include "verbs/limits.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <new>
#include <span>

namespace ib::drivers {
namespace {

namespace access = verbs::access;
namespace limits = verbs::limits;
namespace region_flag = control::region_flag;

constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kKnownAccess = access::kLocalWrite | access::kRemoteAny | access::kMwBind |
                                       access::kZeroBased | access::kOnDemand | access::kHugeTlb |
                                       access::kFlushGlobal | access::kOptionalRange;

// No atomic of 8 bytes may meet a boundary between ranges.
constexpr std::uint64_t kBoundary = 8;

bool check_range(const control::PhysicalRange& range, const Dm* dm, std::string& reason) {
  if (range.length == 0) {
    reason = "it is empty";
  } else if (range.address > kEverything - range.length) {
    reason = fmt::format("{} bytes from {:#x} on wrap around the end of the address space",
                         range.length, range.address);
  } else if (dm != nullptr &&
             (range.address > dm->length || range.length > dm->length - range.address)) {
    reason = fmt::format("bytes {} to {} of device memory that has {}", range.address,
                         range.address + range.length, dm->length);
  }
  return reason.empty();
}

// The list, and the length of all. `first`: iova of the first byte.
bool fill(std::span<const control::PhysicalRange> ranges, const Dm* dm, std::uint64_t first,
          hca::RangeList& list, std::uint64_t& length, std::string& reason) {
  length = 0;
  for (const control::PhysicalRange& range : ranges) {
    const std::uint64_t iova = first + length;
    const std::string which = fmt::format("range {} of {}: ", list.count, ranges.size());
    if (!check_range(range, dm, reason)) {
      reason.insert(0, which);
      return false;
    }
    const bool joint = list.count != 0;
    if ((joint && iova % kBoundary != 0) || range.address % kBoundary != iova % kBoundary) {
      reason = fmt::format(
          "{}address {:#x} for iova {:#x}; where ranges meet the iova is a multiple of 8, and each "
          "address is as far from one as its iova",
          which, range.address, iova);
      return false;
    }
    if (range.length > limits::kMaxMrSize - length || iova > kEverything - range.length) {
      reason =
          fmt::format("{}they are too long together; at most {} bytes", which, limits::kMaxMrSize);
      return false;
    }
    const std::uint64_t base = dm != nullptr ? dm->offset : 0;
    list.append(base + range.address, range.length);
    length += range.length;
  }
  return true;
}

}  // namespace

Status check_access(std::uint32_t flags, std::string& reason) {
  if ((flags & access::kFlushPersistent) != 0) {
    reason = "IBV_ACCESS_FLUSH_PERSISTENT: an HCA of softib has no persistent memory";
    return Status::NotSupported;
  }
  if ((flags & ~kKnownAccess) != 0) {
    reason = fmt::format("access flags {:#x} are not supported", flags & ~kKnownAccess);
    return Status::InvalidParameter;
  }
  if ((flags & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
      (flags & access::kLocalWrite) == 0) {
    reason =
        "remote write and remote atomic access need IBV_ACCESS_LOCAL_WRITE too [IBA1 10.6.3.1]";
    return Status::InvalidParameter;
  }
  return Status::Ok;
}

Status check_extent(Core& core, HcaFile& file, const control::RegMrIn& in, Extent& out,
                    std::string& reason) {
  if ((in.flags & (region_flag::kNull | region_flag::kImplicitOdp)) != 0) {
    out = {nullptr, 0, kEverything, 0, 0};
    if ((in.flags & region_flag::kNull) == 0 && (in.access & access::kOnDemand) == 0) {
      reason = "registering the whole address space needs IBV_ACCESS_ON_DEMAND";
      return Status::InvalidParameter;
    }
    return Status::Ok;
  }
  out = {nullptr, in.address, in.length, (in.access & access::kZeroBased) != 0 ? 0 : in.iova, 0};
  if (in.length > limits::kMaxMrSize) {
    reason = fmt::format("a region of {} bytes; at most {}", in.length, limits::kMaxMrSize);
    return Status::InvalidParameter;
  }
  if (in.address > kEverything - in.length || out.iova > kEverything - in.length) {
    reason =
        fmt::format("a region of {} bytes from {:#x} on wraps around the end of the address space",
                    in.length, in.address);
    return Status::InvalidParameter;
  }
  if (in.dm == control::kNoIndex) return Status::Ok;
  out.dm = find_own(core.dms, file, in.dm);
  if (out.dm == nullptr) return no_such(core, Kind::DeviceMemory, in.dm, reason);
  if (in.address > out.dm->length || in.length > out.dm->length - in.address) {
    reason = fmt::format("bytes {} to {} of device memory {}, which has {}", in.address,
                         in.address + in.length, control::index_of(in.dm), out.dm->length);
    return Status::InvalidParameter;
  }
  out.address = out.dm->offset + in.address;
  return Status::Ok;
}

Status make_extent(Core& core, HcaFile& file, const control::PhysicalIn& in, Extent& out,
                   std::string& reason) {
  if (in.count == 0 || in.count > limits::kMaxRanges) {
    reason = fmt::format("{} ranges; 1 to {}", in.count, limits::kMaxRanges);
    return Status::InvalidParameter;
  }
  out = {};
  out.iova = (in.access & access::kZeroBased) != 0 ? 0 : in.iova;
  if (in.dm != control::kNoIndex) {
    out.dm = find_own(core.dms, file, in.dm);
    if (out.dm == nullptr) return no_such(core, Kind::DeviceMemory, in.dm, reason);
  }
  hca::RangeList list;
  list.kind = out.dm != nullptr ? hca::KeyKind::DeviceMemory : hca::KeyKind::Region;
  if (!fill(std::span(in.ranges).first(in.count), out.dm, out.iova, list, out.length, reason)) {
    return Status::InvalidParameter;
  }
  const auto piece = core.memory.allocate(sizeof list, reason);
  if (!piece) return piece.error();
  out.ranges = *piece;
  new (core.arena().heap(*piece, sizeof list)) hca::RangeList(list);
  return Status::Ok;
}

}  // namespace ib::drivers
