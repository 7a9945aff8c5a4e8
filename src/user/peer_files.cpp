// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/peer_files.h"

#include "base/buffers.h"

#include <span>
#include <string>
#include <utility>

namespace ib::user {

namespace control = verbs::control;

namespace {

// This process or softibd has no descriptor left. Else the channel is gone, and with it who would
// read.
bool may_come_later(Status status) {
  return status == Status::TooManyHandles || status == Status::InsufficientResources;
}

}  // namespace

std::byte* PeerFiles::map(std::uint32_t index, std::uint32_t generation, std::uint64_t& size) {
  const std::lock_guard guard(lock_);
  Backing& known = backings_[index];
  if (known.generation != generation) {
    // Nobody uses the mapping of an older generation: its owner waited for quiescence.
    known.mapping.reset();
    known.generation = generation;
    known.mapping = get_backing({index, generation});
    count_files();
  }
  if (!known.mapping) return nullptr;  // now or before
  size = known.mapping->size();
  return known.mapping->base();
}

std::unique_ptr<platform::MappedFile> PeerFiles::get_backing(const Name& name) {
  control::BackingOut out;
  platform::ControlReply reply =
      channel_.call(static_cast<std::uint32_t>(Code::GetBacking), 0, bytes_of(name),
                    std::as_writable_bytes(std::span(&out, 1)));
  if (reply.status != Status::Ok || !reply.handles[0].valid()) return nullptr;
  std::string reason;
  auto mapped = host_.map(reply.handles[0], out.size, reason);
  // The size comes from the file, not from device memory: beyond its end there is no memory.
  if (!mapped || (*mapped)->file_size() < out.size) return nullptr;
  return *std::move(mapped);
}

[[gnu::always_inline]] inline PeerFiles::Channel* PeerFiles::find_channel(const Name& name,
                                                                          Status& reason) {
  Channel& channel = channels_[name.index];
  if (channel.generation != name.generation || !channel.write_end.valid()) {
    reason = get_channel(channel, name);
    if (reason != Status::Ok) {
      drop_channel(name.index);
      return nullptr;
    }
    count_files();
  }
  return &channel;
}

hca::Written PeerFiles::write_event(std::uint32_t cq, std::uint32_t index,
                                    std::uint32_t generation) {
  const std::lock_guard guard(lock_);
  if (channels_are_gone_) return hca::Written::Gone;
  constexpr int kTries = 2;
  for (int i = 0; i < kTries; ++i) {
    Status reason = Status::Ok;
    const Channel* channel = find_channel({index, generation}, reason);
    if (channel == nullptr) {
      return may_come_later(reason) ? hca::Written::NotNow : hca::Written::Gone;
    }
    const std::uint64_t event = cq;
    const Status written = host_.write_pipe(channel->write_end.get(), bytes_of(event));
    if (written == Status::Ok) return hca::Written::Yes;
    if (written == Status::InsufficientResources) return hca::Written::Full;
    if (written != Status::NotFound) return hca::Written::Gone;
    drop_channel(index);  // the program has closed its descriptor
  }
  return hca::Written::NotNow;
}

bool PeerFiles::holds_events(std::uint32_t index, std::uint32_t generation) {
  const std::lock_guard guard(lock_);
  if (channels_are_gone_) return false;
  Status reason = Status::Ok;
  const Channel* channel = find_channel({index, generation}, reason);
  return channel != nullptr && host_.holds_bytes(channel->write_end.get());
}

Status PeerFiles::get_channel(Channel& channel, const Name& name) {
  platform::ControlReply reply =
      channel_.call(static_cast<std::uint32_t>(Code::GetChannel), 0, bytes_of(name), {});
  if (reply.status != Status::Ok) return reply.status;
  channel.generation = name.generation;
  channel.read_end = host_.keep(std::move(reply.handles[0]));
  channel.write_end = host_.keep(std::move(reply.handles[1]));
  return Status::Ok;
}

void PeerFiles::forget_channel(std::uint32_t index) {
  const std::lock_guard guard(lock_);
  drop_channel(index);
}

void PeerFiles::drop_channel(std::uint32_t index) {
  channels_.erase(index);
  count_files();
}

void PeerFiles::let_channels_go() {
  const std::lock_guard guard(lock_);
  channels_are_gone_ = true;
  channels_.clear();
  count_files();
}

template <class Files>
std::vector<PeerFiles::Name> PeerFiles::gone_among(Code code, const Files& files) {
  std::vector<Name> names;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [index, file] : files) names.push_back({index, file.generation});
  }
  // Without the lock: a thread that executes a work request may want it.
  std::erase_if(names, [&](const Name& name) {
    control::BackingOut out;
    return channel_
               .call(static_cast<std::uint32_t>(code), 0, bytes_of(name),
                     std::as_writable_bytes(std::span(&out, 1)))
               .status != Status::NotFound;
  });
  return names;
}

std::vector<PeerFiles::Gone> PeerFiles::take_gone() {
  const std::vector<Name> channels = gone_among(Code::GetChannel, channels_);
  const std::vector<Name> backings = gone_among(Code::GetBacking, backings_);
  std::vector<Gone> gone;
  gone.reserve(backings.size());
  const std::lock_guard guard(lock_);
  for (const Name& name : channels) {
    const auto found = channels_.find(name.index);
    if (found != channels_.end() && found->second.generation == name.generation)
      channels_.erase(found);
  }
  for (const Name& name : backings) {
    const auto found = backings_.find(name.index);
    if (found == backings_.end() || found->second.generation != name.generation) continue;
    gone.push_back({name.index, name.generation, std::move(found->second.mapping)});
    backings_.erase(found);
  }
  count_files();
  return gone;
}

}  // namespace ib::user
