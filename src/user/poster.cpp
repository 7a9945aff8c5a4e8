// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/poster.h"

#include "base/buffers.h"
#include "hca/layout/doorbell.h"
#include "hca/layout/op_scope.h"
#include "user/process.h"

#include <span>

namespace ib::user {

std::byte* Poster::map_backing(std::uint32_t index, std::uint32_t generation, std::uint64_t& size) {
  std::lock_guard guard(lock_);
  Backing& known = backings_[index];
  if (known.generation == generation && !known.mapping) return nullptr;  // was refused before
  if (known.generation != generation) {
    // Nobody uses the mapping of an older generation: its owner waited for quiescence.
    known.mapping.reset();
    known.generation = generation;
    const control::GenerationIn in{index, generation};
    control::BackingOut out;
    platform::ControlReply reply =
        channel_->call(static_cast<std::uint32_t>(control::Code::GetBacking), 0, bytes_of(in),
                       std::as_writable_bytes(std::span(&out, 1)));
    if (reply.status != Status::Ok || !reply.handles[0].valid()) return nullptr;
    std::string reason;
    auto mapped = host_.map(reply.handles[0], out.size, reason);
    // The size comes from the file, not from device memory: beyond its end there is no memory.
    if (!mapped || (*mapped)->file_size() < out.size) return nullptr;
    known.mapping = *std::move(mapped);
  }
  size = known.mapping->size();
  return known.mapping->base();
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

bool Poster::send(std::uint32_t cq, std::uint32_t index, std::uint32_t generation) {
  if (channels_are_gone_) return true;
  Channel& channel = channels_[index];
  if (channel.generation != generation || !channel.write_end.valid()) {
    const control::GenerationIn in{index, generation};
    platform::ControlReply reply =
        channel_->call(static_cast<std::uint32_t>(control::Code::GetChannel), 0, bytes_of(in), {});
    if (reply.status != Status::Ok) {
      channels_.erase(index);
      return true;  // the channel is gone, and with it who would read
    }
    channel.generation = generation;
    channel.read_end = host_.keep(std::move(reply.handles[0]));
    channel.write_end = host_.keep(std::move(reply.handles[1]));
  }
  const std::uint64_t event = cq;
  const Status written = host_.write_pipe(channel.write_end.get(), bytes_of(event));
  if (written == Status::NotFound) {
    channels_.erase(index);  // for the next event
    return false;
  }
  return written != Status::InsufficientResources;
}

void Poster::notify(std::uint32_t cq, std::uint32_t channel, std::uint32_t generation) {
  bool kept = false;
  {
    std::lock_guard guard(lock_);
    kept = !send(cq, channel, generation);
    if (kept) unsent_.push_back({cq, channel, generation});
  }
  if (kept) kick(process_.plane().slot());
}

bool Poster::retry_notifications() {
  std::lock_guard guard(lock_);
  std::erase_if(unsent_, [this](const Unsent& u) { return send(u.cq, u.channel, u.generation); });
  return !unsent_.empty();
}

void Poster::forget_channel(std::uint32_t index) {
  std::lock_guard guard(lock_);
  channels_.erase(index);
}

void Poster::let_channels_go() {
  std::lock_guard guard(lock_);
  channels_are_gone_ = true;
  channels_.clear();
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
