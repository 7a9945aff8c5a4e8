// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CqConsumer: the consumer's end of a completion queue [IBA1 11.4.2]: the ring as its owner reads
// it, and the request for a completion event.
//
// Thread rule: one thread at a time; its owner has the lock, if one is needed.
#pragma once

#include "hca/layout/arena.h"
#include "hca/queues/cq_producer.h"
#include "verbs/control.h"

#include <cstdint>

namespace ib::hca {

class CqConsumer {
 public:
  // Opens a queue that softibd has just made. Returns false if its attributes are impossible.
  bool open(const Arena& arena, std::uint32_t index, const verbs::control::CqOut& made);
  // Goes on in another ring (resize), which holds what was not polled at the same positions.
  bool use_ring(const Arena& arena, const verbs::control::CqOut& made);
  void close() { *this = CqConsumer(); }

  // Where the next completion comes, and whether it has. It may hold garbage: read each field
  // once.
  const Cqe& head() const { return *head_; }
  [[gnu::always_inline]] bool arrived(const Cqe& slot) const {
    // Acquire: the fields that are read next are those that were written before it.
    return slot.seq.load(std::memory_order_acquire) == sequence(consumed_);
  }
  [[gnu::always_inline]] void advance() {
    ++consumed_;
    head_ = ring_ + order_.slot(consumed_);
    // Release: the slot has been read. A producer may write it from now on.
    entry_->consumer.consumer.store(consumed_, std::memory_order_release);
  }

  // Requests one event at the next completion (with solicited_only at the next solicited one or
  // error), or now if there are completions that no event has reported [IBA1 11.4.2.2].
  void arm(PosterHost& host, bool solicited_only);
  bool is_armed() const { return armed_; }  // since the last event that is known of here
  // At the end of a poll of an armed queue: a program that arms, polls a few and then waits would
  // never wake otherwise.
  void fire_for_the_rest(PosterHost& host) { fire_from(host, consumed_); }

  // Voids the completions of a queue pair that was reset or destroyed: `end` gets each, so that the
  // receive that it ends is free again; is_void() detects them afterwards.
  template <class End>
  void discard(std::uint32_t qpn, End&& end) {
    for (std::uint64_t position = consumed_; position - consumed_ < order_.slots(); ++position) {
      Cqe& slot = ring_[order_.slot(position)];
      if (slot.seq.load(std::memory_order_acquire) != sequence(position)) return;
      if (slot.qpn != qpn) continue;
      end(slot);
      slot.qpn = kVoid;
    }
  }
  static bool is_void(std::uint32_t qpn) { return qpn == kVoid; }

 private:
  static constexpr std::uint32_t kVoid = 0;  // no completion's queue pair
  // What a slot's `seq` is once the completion at `position` is in it.
  std::uint32_t sequence(std::uint64_t position) const {
    return static_cast<std::uint32_t>(position >> log_slots_) + 1;
  }
  void fire_from(PosterHost& host, std::uint64_t position);

  CqEntry* entry_ = nullptr;
  Cqe* ring_ = nullptr;
  const Cqe* head_ = nullptr;  // in the ring, at consumed_
  RingOrder order_;
  std::uint32_t index_ = kNone;
  std::uint32_t log_slots_ = 0;
  bool armed_ = false;
  std::uint64_t consumed_ = 0;
};

}  // namespace ib::hca
