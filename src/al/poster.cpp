// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/poster.h"

#include "base/buffers.h"
#include "hca/layout/doorbell.h"
#include "hca/memory/memory_plane.h"
#include "hca/queues/late_events.h"

#include <span>
#include <utility>

namespace ib::al {

namespace control = verbs::control;
using control::Code;

void Poster::relax(std::uint32_t) {
  system_.host.relax(0);  // a pause
}

template <class In>
Status Poster::ask(Code code, const In& in, std::span<std::byte> out, io::Irp& irp) {
  bool done = false;
  irp.major = io::Major::DeviceControl;
  irp.code = static_cast<std::uint32_t>(code);
  irp.file = &zero_;
  irp.in = bytes_of(in);
  irp.out = out;
  io::call_driver(system_.root,
                  irp.start([](io::Irp&, void* flag) { *static_cast<bool*>(flag) = true; }, &done));
  IB_ASSERT(done);  // none of these waits for anything
  return irp.status;
}

std::byte* Poster::map_backing(std::uint32_t index, std::uint32_t generation, std::uint64_t& size) {
  if (!backings_.contains(index)) (void)sweep();
  Backing& known = backings_[index];
  if (known.generation != generation) {
    known.mapping.reset();
    known.generation = generation;
    control::BackingOut out;
    io::Irp irp;
    const control::GenerationIn in{index, generation};
    const Status status = ask(Code::GetBacking, in, room_of(out), irp);
    if (status == Status::Ok && irp.out_handles[0].valid()) {
      std::string reason;
      auto mapped = system_.host.map(irp.out_handles[0], out.size, reason);
      if (mapped && (*mapped)->file_size() >= out.size) known.mapping = *std::move(mapped);
    }
  }
  if (!known.mapping) return nullptr;
  size = known.mapping->size();
  return known.mapping->base();
}

// Also while a work request is executed: that does not use a file which softibd has given up, since
// both are work of one thread and the request has found its memory afterwards.
Duration Poster::sweep() {
  const Instant start = now();
  const Duration until =
      schedule_.until(start, backings_.size(), std::exchange(peer_may_go_, false));
  if (until > Duration::zero()) return until;
  std::erase_if(backings_, [this](const auto& entry) {
    const control::GenerationIn in{entry.first, entry.second.generation};
    control::BackingOut out;
    io::Irp irp;
    if (ask(Code::GetBacking, in, room_of(out), irp) != Status::NotFound) return false;
    plane_->remote_keys().mappings().forget(in.index, in.generation);
    return true;
  });
  schedule_.swept(start, now(), backings_.size());
  return schedule_.until(now(), backings_.size(), false);
}

void Poster::kick(std::uint32_t index) {
  hca::ProcessSlot* slot = system_.arena.slot(index);
  if (slot == nullptr) return;
  hca::ring_doorbell(
      *slot, index, [this](std::atomic<std::uint32_t>& word) { system_.host.wake(word); },
      [this](const control::RaiseEventIn& event) { raise(event); });
}

// Called while a request of this client to a peer waits; the peer may have one to this client.
void Poster::serve_bounces() {
  plane_->serve_bounces();
}

// The owner sends what does not fit, since it looks at its pipe when it is kicked.
void Poster::notify(std::uint32_t index) {
  hca::CqEntry* const cq = system_.arena.cq(index);
  hca::ProcessSlot* const owner = cq != nullptr ? system_.arena.slot(cq->id.owner_slot) : nullptr;
  if (owner == nullptr || (!hca::has_late_events(*cq) && send(index, *cq))) return;
  hca::add_late_event(*cq, *owner);
  kick(cq->id.owner_slot);
}

bool Poster::send(std::uint32_t index, const hca::CqEntry& cq) {
  io::Irp irp;
  const control::GenerationIn in{cq.id.channel, cq.id.channel_generation};
  const Status got = ask(Code::GetChannel, in, {}, irp);
  if (got == Status::InsufficientResources) return false;  // softibd has no descriptor left
  if (got != Status::Ok) return true;                      // gone, and with it who would read
  const std::uint64_t bytes = index;
  return system_.host.write_pipe(irp.out_handles[1].get(), bytes_of(bytes)) !=
         Status::InsufficientResources;
}

// Both only inform.
void Poster::raise(const control::RaiseEventIn& event) {
  io::Irp irp;
  (void)ask(Code::RaiseEvent, event, {}, irp);
}

void Poster::trace(const control::TraceErrorIn& error) {
  io::Irp irp;
  (void)ask(Code::TraceError, error, {}, irp);
}

}  // namespace ib::al
