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
#include "hca/copy.h"
#include "hca/memory_plane.h"

#include <cstdint>
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
  Status post(std::uint64_t wr_id, std::span<const Sge> sge) {
    if (free_count_ == 0) [[unlikely]]
      return sge.size() > geometry_.max_sge ? Status::InvalidParameter : Status::LimitExceeded;
    if (sge.size() != 1 || geometry_.max_sge == 0) return post_list(wr_id, sge);
    const std::uint32_t id = take_id({wr_id, 1, true});
    write(next_, {id, 1, 0}, sge[0]);
    put(sges_[std::size_t{id} * geometry_.max_sge], sge[0]);
    publish(id);
    return Status::Ok;
  }
  // Ends the receive `id` and gives its wr_id; false if no such receive is outstanding. Not an
  // optional: that goes through memory, small stores read back by a large load, which stalls.
  bool finish(std::uint32_t id, std::uint64_t& wr_id) {
    if (id >= records_.size() || !records_[id].outstanding) return false;
    records_[id].outstanding = false;
    free_[free_count_++] = id;  // has room for each id once
    wr_id = records_[id].wr_id;
    return true;
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
  Status post_list(std::uint64_t wr_id, std::span<const Sge> sge);
  std::uint32_t take_id(const Record& record) {
    const std::uint32_t id = free_[--free_count_];
    records_[id] = record;
    return id;
  }
  // Element by element: a block copy would read in one load what was just written in several.
  static void put(Sge& to, const Sge& from) {
    to.address = from.address;
    to.length = from.length;
    to.lkey = from.lkey;
  }
  static void write(std::byte* at, const ReceiveWqe& wqe, const Sge& sge) {
    auto* to = reinterpret_cast<ReceiveWqe*>(at);
    to->id = wqe.id;
    to->num_sge = wqe.num_sge;
    put(*reinterpret_cast<Sge*>(at + sizeof wqe), sge);
  }
  void publish(std::uint32_t id) {
    ids_[posted_ & mask_] = id;
    tail_.store(++posted_, std::memory_order_release);
    next_ = (posted_ & mask_) == 0 ? ring_ : next_ + geometry_.stride;
    // Senders have read that line when it held an older receive.
    prefetch_for_write(next_);
  }

  std::byte* ring_;
  std::byte* next_ = nullptr;  // the slot of posted_
  Geometry geometry_;
  Shared64& tail_;
  std::uint32_t mask_;
  std::uint64_t posted_ = 0;
  std::vector<Record> records_;
  std::vector<Sge> sges_;            // max_sge per record
  std::vector<std::uint32_t> free_;  // ids, the first free_count_ of them
  std::uint32_t free_count_ = 0;
  std::vector<std::uint32_t> ids_;  // by ring position
};

}  // namespace ib::hca
