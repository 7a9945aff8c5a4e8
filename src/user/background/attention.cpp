// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/attention.h"

#include <mutex>

namespace ib::user {

void Attention::begin(const hca::ProcessSlot& slot) {
  slot_ = &slot;
  seen_ = slot.attention.load(std::memory_order_acquire);
}

bool Attention::look_around() {
  const std::uint32_t attention = slot_->attention.load(std::memory_order_acquire);
  if (attention == seen_.load(std::memory_order_acquire) &&
      !has_unflushed_.load(std::memory_order_acquire)) {
    return true;
  }
  std::unique_lock guard(connection_.control_lock(), std::try_to_lock);
  if (!guard) return false;
  seen_.store(attention, std::memory_order_release);
  return flush_broken();
}

bool Attention::flush_broken() {
  has_unflushed_.store(false, std::memory_order_release);
  for (WorkQueues* queues : objects_.own_queues()) {
    if (queues->state() == verbs::QpState::Error) queues->flush_after_error();
  }
  return !has_unflushed_.load(std::memory_order_acquire);
}

}  // namespace ib::user
