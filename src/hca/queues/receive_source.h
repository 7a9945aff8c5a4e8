// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ReceiveSource: the poster's view of a receive queue or shared receive queue of a peer.
//
// Remembers the checked geometry, so that taking a receive costs one line of the ring and, only
// when the known ones are used up, a look at the tail.
#pragma once

#include "hca/layout/arena.h"
#include "hca/layout/ring_order.h"
#include "hca/memory/copy.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace ib::hca {

// A receive request, copied out of the ring before it is used.
struct TakenReceive {
  std::uint32_t id = 0;
  std::uint32_t num_sge = 0;
  std::uint32_t srq = kNone;  // index, if it came from one
  std::array<Sge, kMaxSge> sge;
  std::uint64_t capacity() const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < num_sge; ++i) sum += sge[i].length;
    return sum;
  }
};

// Holds a receive, or none. Unlike std::optional it does not clear its room for each one.
class HeldReceive {
 public:
  explicit operator bool() const { return held_; }
  const TakenReceive& operator*() const { return receive_; }
  const TakenReceive* operator->() const { return &receive_; }
  // To be filled by ReceiveSource::copy().
  TakenReceive& emplace() {
    held_ = true;
    receive_.srq = kNone;
    return receive_;
  }
  void reset() { held_ = false; }

 private:
  TakenReceive receive_;
  bool held_ = false;
};

class ReceiveSource {
 public:
  // False if the geometry in device memory is nonsense.
  bool set(const Arena& arena, std::uint64_t ring, std::uint32_t slots, std::uint32_t stride) {
    ring_ = nullptr;
    if (slots == 0 || (slots & (slots - 1)) != 0 || stride < receive_stride(1) ||
        stride > receive_stride(kMaxSge) || stride % sizeof(Sge) != 0) {
      return false;
    }
    ring_ = arena.heap(ring, std::uint64_t{slots} * stride);
    order_ = RingOrder(slots);
    stride_ = stride;
    max_sge_ = static_cast<std::uint32_t>((stride - sizeof(ReceiveWqe)) / sizeof(Sge));
    tail_ = 0;
    return ring_ != nullptr;
  }
  bool valid() const { return ring_ != nullptr; }

  // Whether a receive is posted at `head`; looks at `tail` only if needed.
  bool available(std::uint64_t head, const Shared64& tail) {
    if (is_between(head)) return true;
    tail_ =
        tail.load(std::memory_order_acquire);  // with ReceiveRing::publish(): the slots are there
    return is_between(head);
  }
  // False if it is malformed.
  bool copy(std::uint64_t head, TakenReceive& out) const {
    const std::byte* at = slot(head);
    ReceiveWqe wqe;
    std::memcpy(&wqe, at, sizeof wqe);
    if (wqe.num_sge > max_sge_) return false;
    out.id = wqe.id;
    out.num_sge = wqe.num_sge;
    std::memcpy(out.sge.data(), at + sizeof wqe, wqe.num_sge * sizeof(Sge));
    return true;
  }
  // The same for a receive of one element; false if it has another number of them.
  bool copy_single(std::uint64_t head, std::uint32_t& id, Sge& sge) const {
    const std::byte* at = slot(head);
    ReceiveWqe wqe;
    std::memcpy(&wqe, at, sizeof wqe);
    id = wqe.id;
    std::memcpy(&sge, at + sizeof wqe, sizeof sge);
    return wqe.num_sge == 1;
  }
  // Begins to fetch the receive at `head`: its owner's core wrote that line last.
  void prefetch(std::uint64_t head) const {
    if (head != tail_) prefetch_for_read(slot(head));
  }
  void forget_tail() { tail_ = 0; }

 private:
  // At least one receive before the tail, and not more than there are slots.
  bool is_between(std::uint64_t head) const { return tail_ - head - 1 < order_.slots(); }
  const std::byte* slot(std::uint64_t position) const {
    return ring_ + std::uint64_t{order_.slot(position)} * stride_;
  }

  std::byte* ring_ = nullptr;
  RingOrder order_;
  std::uint32_t stride_ = 0;
  std::uint32_t max_sge_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace ib::hca
