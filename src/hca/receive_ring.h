// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ReceiveRing: the owner's side of a receive queue or shared receive queue.
//
// The ring is in device memory, where posters consume it; wr_ids and a copy of the elements stay
// here, so that nothing a poster could damage decides where this process writes.
// A receive has an id until its completion is polled. Of a QP's own queue they end in order; of an
// SRQ in any order. Thread rule: post() and finish() under the owner's recv_lock.
#pragma once

#include "base/result.h"
#include "hca/arena.h"
#include "hca/memory_plane.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ib::hca {

class ReceiveRing {
 public:
  struct Geometry {
    std::uint64_t ring = 0;
    std::uint32_t slots = 0;
    std::uint32_t stride = 0;
    std::uint32_t max_wr = 0;
    std::uint32_t max_sge = 0;
  };
  // nullptr if the geometry that softibd gave is impossible.
  static std::unique_ptr<ReceiveRing> create(const Arena& arena, const Geometry& geometry,
                                             Shared64& tail);

  // InvalidParameter: too many elements; LimitExceeded: full.
  Status post(std::uint64_t wr_id, std::span<const Sge> sge);
  // Ends the receive `id` and gives its wr_id; nothing if no such receive is outstanding.
  std::optional<std::uint64_t> finish(std::uint32_t id) {
    if (id >= records_.size() || !records_[id].outstanding) return std::nullopt;
    records_[id].outstanding = false;
    free_.push_back(id);
    return records_[id].wr_id;
  }
  // Puts a payload that came inside the completion where the receive said (Cqe).
  void scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
               std::span<const std::byte> payload) const;
  void reset();
  std::uint64_t tail() const { return posted_; }
  std::uint32_t max_wr() const { return geometry_.max_wr; }
  // The id of the receive at a ring position, from private memory.
  std::uint32_t id_at(std::uint64_t position) const { return ids_[position & mask_]; }

 private:
  struct Record {
    std::uint64_t wr_id = 0;
    std::uint32_t num_sge = 0;
    bool outstanding = false;
  };
  ReceiveRing(std::byte* ring, const Geometry& geometry, Shared64& tail);

  std::byte* ring_;
  Geometry geometry_;
  Shared64& tail_;
  std::uint32_t mask_;
  std::uint64_t posted_ = 0;
  std::vector<Record> records_;
  std::vector<Sge> sges_;            // max_sge per record
  std::vector<std::uint32_t> free_;  // ids
  std::vector<std::uint32_t> ids_;   // by ring position
};

}  // namespace ib::hca
