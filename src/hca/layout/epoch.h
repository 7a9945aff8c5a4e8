// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Epochs: how posters that have cached facts about a peer find out that those may have changed.
//
// Each process slot has a number that rises with each change to what the process owns: before a
// Quiescence for it, when the path of one of its queue pairs is stored, and for all slots when a
// port changes. A poster keeps the sum of the epochs of the two processes that a connection joins,
// and refreshes what it has cached when the sum differs. Both only rise, so equal sums mean that
// neither has changed. The changes of other processes cost a connection nothing.
#pragma once

#include "hca/layout/arena.h"

namespace ib::hca {

// Instead of a slot: objects of any process.
inline constexpr std::uint32_t kAnyOwner = kNone;

// Stores of the caller's that come before are seen by a poster that has read the new epoch.
inline void advance_epoch(const Arena& arena, std::uint32_t owner) {
  if (owner != kAnyOwner) {
    ProcessSlot* slot = arena.slot(owner);
    if (slot != nullptr) slot->epoch.fetch_add(1, std::memory_order_acq_rel);
    return;
  }
  const std::uint32_t used = arena.header().slots_used.load(std::memory_order_acquire);
  for (std::uint32_t s = 0; s < used && s < kMaxSlots; ++s) {
    arena.slot(s)->epoch.fetch_add(1, std::memory_order_acq_rel);
  }
}

// The epochs of the two processes of a connection, as one number.
class EpochPair {
 public:
  EpochPair() = default;
  EpochPair(const ProcessSlot& one, const ProcessSlot& other)
      : one_(&one.epoch), other_(&other.epoch) {}
  std::uint64_t now() const {
    return one_->load(std::memory_order_acquire) + other_->load(std::memory_order_acquire);
  }

 private:
  static inline const Shared64 kZero{0};
  const Shared64* one_ = &kZero;
  const Shared64* other_ = &kZero;
};
inline constexpr std::uint64_t kNoEpoch = ~std::uint64_t{0};  // no sum is this

}  // namespace ib::hca
