// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/poster.h"

#include "base/buffers.h"
#include "hca/layout/doorbell.h"
#include "hca/memory/op_scope.h"
#include "hca/queues/late_events.h"
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

void Poster::notify(std::uint32_t index) {
  hca::CqEntry* const cq = arena_.cq(index);
  hca::ProcessSlot* const owner = cq != nullptr ? arena_.slot(cq->id.owner_slot) : nullptr;
  if (owner == nullptr) return;
  if (!hca::send_event(*cq, *owner, EventPipe(files_, *cq, index))) kick(cq->id.owner_slot);
  if (process_.service().wants_sweep()) wake_service();
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
