// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/poster.h"

#include "base/buffers.h"
#include "hca/layout/doorbell.h"
#include "hca/layout/op_scope.h"
#include "user/process.h"

#include <span>

namespace ib::user {

std::byte* Poster::map_backing(std::uint32_t index, std::uint32_t generation, std::uint64_t& size) {
  std::byte* const base = files_.map(index, generation, size);
  if (process_.service().wants_sweep()) wake_service();
  return base;
}

void Poster::wake_service() {
  kick(process_.plane().slot());
}

void Poster::kick(std::uint32_t index) {
  hca::ProcessSlot* slot = arena_.slot(index);
  if (slot == nullptr) return;
  hca::ring_doorbell(
      *slot, index, [this](std::atomic<std::uint32_t>& word) { host_.wake(word); },
      [this](const control::RaiseEventIn& event) { raise(event); });
}

void Poster::serve_bounces() {
  hca::MemoryPlane& plane = process_.plane();
  hca::OpScope scope(plane, hca::executing::kOwn);
  plane.serve_bounces();
}

void Poster::notify(std::uint32_t cq, std::uint32_t channel, std::uint32_t generation) {
  const bool sent = files_.write_event(cq, channel, generation);
  if (!sent) {
    const std::lock_guard guard(lock_);
    unsent_.push_back({cq, channel, generation});
  }
  if (!sent || process_.service().wants_sweep()) wake_service();
}

bool Poster::retry_notifications() {
  const std::lock_guard guard(lock_);
  std::erase_if(unsent_, [this](const Unsent& u) {
    return files_.write_event(u.cq, u.channel, u.generation);
  });
  return !unsent_.empty();
}

void Poster::let_channels_go() {
  files_.let_channels_go();
  const std::lock_guard guard(lock_);
  unsent_.clear();
}

// Both only inform: that softibd is gone is noticed elsewhere.
void Poster::raise(const control::RaiseEventIn& event) {
  (void)channel_->call(static_cast<std::uint32_t>(control::Code::RaiseEvent), 0, bytes_of(event),
                       {});
}

void Poster::trace(const control::TraceErrorIn& error) {
  (void)channel_->call(static_cast<std::uint32_t>(control::Code::TraceError), 0, bytes_of(error),
                       {});
}

}  // namespace ib::user
