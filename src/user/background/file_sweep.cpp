// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/file_sweep.h"

namespace ib::user {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(1);

}  // namespace

Duration FileSweep::round() {
  if (!unmapped()) return kTick;
  const Instant now = host_.now();
  const bool peer_may_go = peer_may_go_.exchange(false, std::memory_order_acq_rel);
  const Duration until = schedule_.until(now, files_.count(), peer_may_go);
  if (until > Duration::zero()) return until;
  sweep(now);
  return kTick;
}

void FileSweep::sweep(Instant now) {
  unmapping_ = files_.take_gone();
  schedule_.swept(now, host_.now(), files_.count());
  if (unmapping_.empty()) return;
  hide_mappings();
  const std::uint32_t own = plane_.slot();
  quiet_.emplace(plane_.arena(), host_.barriers(), own);
  quiet_->skip([own](std::uint32_t slot) { return slot != own; });
}

void FileSweep::hide_mappings() {
  for (const PeerFiles::Gone& one : unmapping_) {
    plane_.remote_keys().mappings().forget(one.index, one.generation);
  }
}

// Returns false while threads may still use what is to be unmapped.
bool FileSweep::unmapped() {
  if (!quiet_) return true;
  if (!quiet_->done()) return false;
  // One of them may have had the mapping from softibd before, and have entered it afterwards.
  hide_mappings();
  unmapping_.clear();
  quiet_.reset();
  return true;
}

}  // namespace ib::user
