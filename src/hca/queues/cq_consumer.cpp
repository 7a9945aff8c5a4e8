// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/cq_consumer.h"

#include <algorithm>
#include <bit>

namespace ib::hca {

bool CqConsumer::open(const Arena& arena, std::uint32_t index, const verbs::control::CqOut& made) {
  entry_ = arena.cq(index);
  index_ = index;
  consumed_ = 0;
  armed_ = false;
  return entry_ != nullptr && use_ring(arena, made);
}

bool CqConsumer::use_ring(const Arena& arena, const verbs::control::CqOut& made) {
  if (made.slots < 2 || !std::has_single_bit(made.slots)) return false;
  std::byte* ring = arena.heap(made.ring, std::uint64_t{made.slots} * sizeof(Cqe));
  if (ring == nullptr) return false;
  ring_ = reinterpret_cast<Cqe*>(ring);
  order_ = RingOrder(made.slots);
  head_ = ring_ + order_.slot(consumed_);
  log_slots_ = static_cast<std::uint32_t>(std::countr_zero(made.slots));
  return true;
}

// Memory orders: our store to `armed` before our next look at the ring; a producer's seq before its
// look at `armed` (CqProducer::fire). A fence between the two steps on each side; an order of the
// store alone would not hold back the loads of the ring, which acquire.
//
// IBA promises an event only for completions added after this call. Adapters get the consumer's
// position with it and fire at once for completions beyond it, and programs count on that
// (UCX polls, arms and sleeps). Completions that an event has reported already give no second one
// here.
//
// Most queues with a channel are polled and never armed, and the fence between a producer's two
// steps waits for the lines of its message. So a producer leaves it out until the first arm(),
// which has all processes pass a barrier: a producer that has not seen `used` has written its seq.
void CqConsumer::arm(PosterHost& host, bool solicited_only) {
  if (entry_->arm.used.load(std::memory_order_relaxed) == 0) {
    entry_->arm.used.store(1, std::memory_order_seq_cst);
    host.barriers().processes();
  }
  // An armed queue stays armed for any completion if either request was for any.
  if (!solicited_only || entry_->arm.armed.load(std::memory_order_relaxed) != 1) {
    entry_->arm.armed.store(solicited_only ? 2 : 1, std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  armed_ = true;
  const std::uint64_t reported = entry_->arm.reported.load(std::memory_order_relaxed);
  fire_from(host, std::max(consumed_, reported));
}

// An armed queue that has completions from `position` on fires.
void CqConsumer::fire_from(PosterHost& host, std::uint64_t position) {
  std::uint32_t wanted = entry_->arm.armed.load(std::memory_order_acquire);
  if (wanted == 0 || wanted == CqEntry::kFiring || entry_->id.channel == kNone) {
    armed_ = false;
    return;
  }
  bool left = false;
  for (; position - consumed_ < order_.slots() && !left; ++position) {
    const Cqe& cqe = ring_[order_.slot(position)];
    if (cqe.seq.load(std::memory_order_acquire) != sequence(position)) break;
    left = wanted == 1 || (cqe.bits & cqe_bit::kSolicited) != 0 || cqe.status != 0;
  }
  if (!left) return;
  armed_ = false;
  // It fails if a producer has been faster.
  if (!entry_->arm.armed.compare_exchange_strong(wanted, 0, std::memory_order_acq_rel)) return;
  entry_->arm.reported.store(position, std::memory_order_relaxed);
  CqProducer::report(host, *entry_, index_);
}

}  // namespace ib::hca
