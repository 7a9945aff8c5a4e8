// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OwnReceives and SharedReceives: the owner's side of a receive queue and of a shared receive
// queue.
//
// The ring is in device memory, where posters consume it; wr_ids and a copy of the elements stay
// here, so that nothing a poster could damage decides where this process writes.
// A receive has an id, which comes back in its completion, until that is polled. Those of a queue
// pair's own queue end in order: the id is the position, and finish() needs no lock. Those of an
// SRQ end in any order: ids are handed out again.
#pragma once

#include "base/result.h"
#include "hca/layout/arena.h"
#include "hca/layout/ring_order.h"
#include "hca/memory/copy.h"
#include "hca/memory/memory_plane.h"
#include "hca/memory/op_scope.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace ib::hca {

// The common part of both. `records`: a place for each receive that can be outstanding.
class ReceiveRing {
 public:
  struct Geometry {
    std::uint64_t ring = 0;
    std::uint32_t slots = 0;
    std::uint32_t stride = 0;
    std::uint32_t max_wr = 0;
    std::uint32_t max_sge = 0;
  };
  std::uint64_t tail() const { return posted_.load(std::memory_order_relaxed); }
  std::uint32_t max_wr() const { return geometry_.max_wr; }

 protected:
  struct Record {
    std::uint64_t wr_id = 0;
    std::uint32_t num_sge = 0;
    bool outstanding = false;  // kept by SharedReceives
    Sge sge;                   // the first; the others: more_
  };
  ReceiveRing(std::byte* ring, const Geometry& geometry, Shared64& tail, std::uint32_t records);
  // nullptr if the geometry that softibd gave is impossible.
  static std::byte* find(const Arena& arena, const Geometry& geometry);

  // By who finishes: the records of all before it are there.
  std::uint64_t posted() const { return posted_.load(std::memory_order_acquire); }
  bool takes(std::span<const Sge> sge) const { return sge.size() <= geometry_.max_sge; }
  // Posts a receive whose record is `at`. sge: not more than max_sge.
  void put(std::uint32_t at, std::uint32_t id, std::uint64_t wr_id, std::span<const Sge> sge) {
    if (sge.size() == 1) [[likely]]
      return put_one(at, id, wr_id, sge[0]);
    put_list(at, id, wr_id, sge);
    publish();
  }
  void put_one(std::uint32_t at, std::uint32_t id, std::uint64_t wr_id, const Sge& sge) {
    Record& record = records_[at];
    record.wr_id = wr_id;
    record.num_sge = 1;
    copy(record.sge, sge);
    auto* to = reinterpret_cast<ReceiveWqe*>(next_);
    to->id = id;
    to->num_sge = 1;
    copy(*reinterpret_cast<Sge*>(next_ + sizeof *to), sge);
    publish();
  }
  // Returns false if memory of its own is gone.
  bool scatter_to(MemoryPlane& plane, std::uint32_t pd, std::uint32_t at,
                  std::span<const std::byte> payload) const;
  void reset() {
    posted_.store(0, std::memory_order_relaxed);
    next_ = ring_;
  }

 private:
  // Element by element: a block copy would read in one load what was just written in several.
  static void copy(Sge& to, const Sge& from) {
    to.address = from.address;
    to.length = from.length;
    to.lkey = from.lkey;
  }
  void put_list(std::uint32_t at, std::uint32_t id, std::uint64_t wr_id, std::span<const Sge> sge);
  void publish() {
    const std::uint64_t posted = tail() + 1;
    // Release, both: the record for who finishes it, the slot for posters.
    posted_.store(posted, std::memory_order_release);
    tail_.store(posted, std::memory_order_release);
    next_ = ring_ + std::uint64_t{order_.slot(posted)} * geometry_.stride;
    // Senders have read that line when it held an older receive.
    prefetch_for_write(next_);
  }

  std::byte* ring_;
  RingOrder order_;
  std::byte* next_;  // the slot of posted_
  Shared64& tail_;
  std::atomic<std::uint64_t> posted_{0};

 protected:
  Geometry geometry_;
  std::uint32_t mask_;
  std::vector<Record> records_;

 private:
  std::size_t more_per_record_;
  std::vector<Sge> more_;
};

// Thread rule: one thread at a time posts, one finishes; these may be different ones.
class OwnReceives : public ReceiveRing {
 public:
  // Returns nullptr if the geometry is impossible.
  static std::unique_ptr<OwnReceives> create(const Arena& arena, const Geometry& geometry,
                                             Shared64& tail);

  // InvalidParameter: too many elements; LimitExceeded: full.
  Status post(std::uint64_t wr_id, std::span<const Sge> sge) {
    if (!takes(sge)) [[unlikely]]
      return Status::InvalidParameter;
    const std::uint64_t position = tail();
    if (position - freed_.load(std::memory_order_acquire) >= geometry_.max_wr) [[unlikely]]
      return Status::LimitExceeded;
    const auto id = static_cast<std::uint32_t>(position);
    put(id & mask_, id, wr_id, sge);
    return Status::Ok;
  }
  // The same of one element. Returns false if it is refused, for whichever reason.
  bool post_one(std::uint64_t wr_id, const Sge& sge) {
    const std::uint64_t position = tail();
    if (position - freed_.load(std::memory_order_acquire) >= most_of_one_) [[unlikely]]
      return false;
    const auto id = static_cast<std::uint32_t>(position);
    put_one(id & mask_, id, wr_id, sge);
    return true;
  }
  // Ends the receive `id` and gives its wr_id; false if no such receive is outstanding. Not an
  // optional: that goes through memory, small stores read back by a large load, which stalls.
  bool finish(std::uint32_t id, std::uint64_t& wr_id) {
    std::uint64_t position = 0;
    if (!is_outstanding(id, position)) return false;
    wr_id = records_[position & mask_].wr_id;
    freed_.store(position + 1, std::memory_order_release);
    unanswered_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Whether one has ended since the last answered(): who then posts the next receive will probably
  // answer that one.
  bool is_unanswered() const { return unanswered_.load(std::memory_order_relaxed); }
  void answered() { unanswered_.store(false, std::memory_order_relaxed); }
  // Copies a payload that came inside the completion (Cqe) to the receive's buffer. Called by the
  // thread that finishes the receive.
  bool scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
               std::span<const std::byte> payload) const;
  // Nobody else uses it.
  void reset();

 private:
  OwnReceives(std::byte* ring, const Geometry& geometry, Shared64& tail);
  bool is_outstanding(std::uint32_t id, std::uint64_t& position) const {
    const std::uint64_t freed = freed_.load(std::memory_order_relaxed);
    position = freed + (id - static_cast<std::uint32_t>(freed));
    return position < posted();
  }

  std::atomic<std::uint64_t> freed_{0};
  std::atomic<bool> unanswered_{false};
  std::uint32_t most_of_one_;  // max_wr, or 0 if a receive may have no element
};

// Thread rule: everything under the owner's recv_lock.
class SharedReceives : public ReceiveRing {
 public:
  // Returns nullptr if the geometry is impossible.
  static std::unique_ptr<SharedReceives> create(const Arena& arena, const Geometry& geometry,
                                                Shared64& tail);

  // As those of OwnReceives.
  Status post(std::uint64_t wr_id, std::span<const Sge> sge) {
    if (!takes(sge)) [[unlikely]]
      return Status::InvalidParameter;
    if (free_count_ == 0) [[unlikely]]
      return Status::LimitExceeded;
    const std::uint32_t id = free_[--free_count_];
    records_[id].outstanding = true;
    put(id, id, wr_id, sge);
    return Status::Ok;
  }
  bool finish(std::uint32_t id, std::uint64_t& wr_id) {
    if (id >= records_.size() || !records_[id].outstanding) return false;
    records_[id].outstanding = false;
    free_[free_count_++] = id;  // has room for each id once
    wr_id = records_[id].wr_id;
    return true;
  }
  bool scatter(MemoryPlane& plane, std::uint32_t pd, std::uint32_t id,
               std::span<const std::byte> payload) const;

 private:
  SharedReceives(std::byte* ring, const Geometry& geometry, Shared64& tail);

  std::vector<std::uint32_t> free_;  // ids, the first free_count_ of them
  std::uint32_t free_count_ = 0;
};

// Ends a receive of `ring`, whose memory is in `pd`, as its completion demands. A payload inside
// the completion goes to the receive's buffer; if that is gone, `status` reports it and the queue
// pair breaks. Returns false if no such receive is outstanding.
template <class Ring>
bool finish(MemoryPlane& plane, Ring& ring, std::uint32_t pd, const Cqe& cqe,
            verbs::WcStatus& status, std::uint64_t& wr_id) {
  const std::uint32_t id = cqe.wqe;
  const std::uint32_t length = cqe.inline_length;
  if (length != 0 && length <= kInlineScatter && status == verbs::WcStatus::Success) {
    std::array<std::byte, kInlineScatter> payload;
    std::memcpy(payload.data(), cqe.payload.data(), length);
    const OpScope scope(plane, executing::kOwn);
    if (!ring.scatter(plane, pd, id, std::span(payload).first(length))) {
      status = verbs::WcStatus::LocProtErr;
      plane.break_own(cqe.qpn, Cause::LocalMemoryGone);
    }
  }
  return ring.finish(id, wr_id);
}

}  // namespace ib::hca
