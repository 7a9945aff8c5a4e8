// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/receive_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::hca {

std::unique_ptr<ReceiveRing> ReceiveRing::create(const Arena& arena, const Geometry& geometry,
                                                 Shared64& tail) {
  if (geometry.slots == 0 || !std::has_single_bit(geometry.slots) ||
      geometry.slots < geometry.max_wr || geometry.max_sge > kMaxSge ||
      geometry.stride < receive_stride(geometry.max_sge)) {
    return nullptr;
  }
  std::byte* ring = arena.heap(geometry.ring, std::uint64_t{geometry.slots} * geometry.stride);
  if (ring == nullptr) return nullptr;
  return std::unique_ptr<ReceiveRing>(new ReceiveRing(ring, geometry, tail));
}

ReceiveRing::ReceiveRing(std::byte* ring, const Geometry& geometry, Shared64& tail)
    : ring_(ring),
      geometry_(geometry),
      tail_(tail),
      mask_(geometry.slots - 1),
      records_(geometry.max_wr),
      sges_(std::size_t{geometry.max_wr} * std::max(geometry.max_sge, 1u)),
      free_(geometry.max_wr),
      ids_(geometry.slots) {
  reset();
}

void ReceiveRing::reset() {
  posted_ = 0;
  next_ = ring_;
  free_count_ = 0;
  for (std::uint32_t id = geometry_.max_wr; id > 0; --id) free_[free_count_++] = id - 1;
  for (Record& record : records_) record.outstanding = false;
}

Status ReceiveRing::post_list(std::uint64_t wr_id, std::span<const Sge> sge) {
  if (sge.size() > geometry_.max_sge) return Status::InvalidParameter;
  const auto count = static_cast<std::uint32_t>(sge.size());
  const std::uint32_t id = take_id({wr_id, count, true});
  const ReceiveWqe wqe{id, count, 0};
  std::memcpy(next_, &wqe, sizeof wqe);
  if (count > 0) {
    std::memcpy(next_ + sizeof wqe, sge.data(), sge.size_bytes());
    std::memcpy(&sges_[std::size_t{id} * geometry_.max_sge], sge.data(), sge.size_bytes());
  }
  publish(id);
  return Status::Ok;
}

void ReceiveRing::scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
                          std::span<const std::byte> payload) const {
  if (id >= records_.size()) return;
  const Record& record = records_[id];
  const Sge* sge = &sges_[std::size_t{id} * std::max(geometry_.max_sge, 1u)];
  for (std::uint32_t i = 0; i < record.num_sge && !payload.empty(); ++i) {
    Sge used = sge[i];
    used.length = std::min(used.length, static_cast<std::uint32_t>(payload.size()));
    LocalPieces piece;
    if (!plane.local(used, pd, verbs::access::kLocalWrite, piece).ok()) return;
    if (piece.count > 0) std::memcpy(piece.piece[0].pointer, payload.data(), used.length);
    payload = payload.subspan(used.length);
  }
}

}  // namespace ib::hca
