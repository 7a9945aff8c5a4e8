// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/receive_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::hca {

std::byte* ReceiveRing::find(const Arena& arena, const Geometry& geometry) {
  if (geometry.slots == 0 || !std::has_single_bit(geometry.slots) ||
      geometry.slots < geometry.max_wr || geometry.max_sge > kMaxSge ||
      geometry.stride < receive_stride(geometry.max_sge)) {
    return nullptr;
  }
  return arena.heap(geometry.ring, std::uint64_t{geometry.slots} * geometry.stride);
}

ReceiveRing::ReceiveRing(std::byte* ring, const Geometry& geometry, Shared64& tail,
                         std::uint32_t records)
    : ring_(ring),
      order_(geometry.slots),
      next_(ring),
      tail_(tail),
      geometry_(geometry),
      mask_(geometry.slots - 1),
      records_(records),
      more_per_record_(std::max(geometry.max_sge, 1u) - 1),
      more_(records * more_per_record_) {}

void ReceiveRing::put_list(std::uint32_t at, std::uint32_t id, std::uint64_t wr_id,
                           std::span<const Sge> sge) {
  const auto count = static_cast<std::uint32_t>(sge.size());
  Record& record = records_[at];
  record.wr_id = wr_id;
  record.num_sge = count;
  record.sge = count == 0 ? Sge{} : sge[0];
  const ReceiveWqe wqe{id, count, 0};
  std::memcpy(next_, &wqe, sizeof wqe);
  if (count == 0) return;
  std::memcpy(next_ + sizeof wqe, sge.data(), sge.size_bytes());
  std::copy(sge.begin() + 1, sge.end(),
            more_.begin() + static_cast<std::ptrdiff_t>(at * more_per_record_));
}

bool ReceiveRing::scatter_to(MemoryPlane& plane, std::uint32_t pd, std::uint32_t at,
                             std::span<const std::byte> payload) const {
  const Record& record = records_[at];
  for (std::uint32_t i = 0; i < record.num_sge && !payload.empty(); ++i) {
    Sge used = i == 0 ? record.sge : more_[at * more_per_record_ + i - 1];
    used.length = std::min(used.length, static_cast<std::uint32_t>(payload.size()));
    LocalPiecesOf<1> piece;
    if (!plane.local().resolve(used, pd, verbs::access::kLocalWrite, piece).ok()) return true;
    if (piece.count > 0) {
      const auto& [to, length, doubtful] = piece.piece[0];
      if (!doubtful) {
        std::memcpy(to, payload.data(), used.length);
      } else if (plane.host().copy_own(to, payload.data(), used.length) !=
                 platform::OwnCopy::Done) {
        return false;
      }
    }
    payload = payload.subspan(used.length);
  }
  return true;
}

std::unique_ptr<OwnReceives> OwnReceives::create(const Arena& arena, const Geometry& geometry,
                                                 Shared64& tail) {
  std::byte* ring = find(arena, geometry);
  if (ring == nullptr) return nullptr;
  return std::unique_ptr<OwnReceives>(new OwnReceives(ring, geometry, tail));
}

OwnReceives::OwnReceives(std::byte* ring, const Geometry& geometry, Shared64& tail)
    : ReceiveRing(ring, geometry, tail, geometry.slots),
      most_of_one_(geometry.max_sge > 0 ? geometry.max_wr : 0) {}

bool OwnReceives::scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
                          std::span<const std::byte> payload) const {
  std::uint64_t position = 0;
  if (!is_outstanding(id, position)) return true;
  return scatter_to(plane, pd, static_cast<std::uint32_t>(position & mask_), payload);
}

void OwnReceives::reset() {
  ReceiveRing::reset();
  freed_.store(0, std::memory_order_relaxed);
}

std::unique_ptr<SharedReceives> SharedReceives::create(const Arena& arena, const Geometry& geometry,
                                                       Shared64& tail) {
  std::byte* ring = find(arena, geometry);
  if (ring == nullptr) return nullptr;
  return std::unique_ptr<SharedReceives>(new SharedReceives(ring, geometry, tail));
}

// The lowest ids first.
SharedReceives::SharedReceives(std::byte* ring, const Geometry& geometry, Shared64& tail)
    : ReceiveRing(ring, geometry, tail, geometry.max_wr), free_(geometry.max_wr) {
  for (std::uint32_t id = geometry.max_wr; id > 0; --id) free_[free_count_++] = id - 1;
}

bool SharedReceives::scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
                             std::span<const std::byte> payload) const {
  if (id >= records_.size() || !records_[id].outstanding) return true;
  return scatter_to(plane, pd, id, payload);
}

}  // namespace ib::hca
