// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion channels (pipes) and backings (memory files with adopted pages): softibd keeps them so
// that peers can get them by index and generation.
#include "drivers/soft_hca/objects/completion_channels.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

constexpr const char* kNotAttached = "only an attached process has channels and backings";
// One process may make softibd hold so large a part of the handles that it can have: what there is
// is for all of them.
constexpr std::size_t kShare = 4;

template <class T>
T* find_of(const Table<T>& table, const Session& session, std::uint32_t handle) {
  T* object = table.find_handle(handle);
  return object != nullptr && object->session == &session ? object : nullptr;
}

template <class T>
T* find_generation(const Table<T>& table, const control::GenerationIn& in) {
  T* object = table.find(in.index);
  return object != nullptr && object->generation == in.generation ? object : nullptr;
}

bool may_bring(Core& core, const Session& session, std::size_t more, std::string& reason) {
  const std::size_t held = 2 * session.channels.size() + session.backings.size();
  const std::size_t most = core.memory.host().max_handles() / kShare;
  if (held + more <= most) return true;
  reason = fmt::format(
      "this process has {} completion channels and {} backings with softibd; it may have {} file "
      "descriptors there (a quarter of softibd's own limit, ulimit -n)",
      session.channels.size(), session.backings.size(), most);
  return false;
}

std::uint32_t generation_of(std::uint64_t serial) {
  return static_cast<std::uint32_t>(1 + serial % 0xffffffffu);
}

}  // namespace

void create_channel(Core& core, Session& session, io::IrpRef irp) {
  if (session.slot == hca::kNone) {
    return fail(core, std::move(irp), Status::InvalidState, kNotAttached);
  }
  platform::DeviceMemoryHost& host = core.memory.host();
  if (!host.is_pipe_end(irp->in_handles[0], false) || !host.is_pipe_end(irp->in_handles[1], true)) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                "two handles are needed: the read end and the write end of a pipe");
  }
  std::string reason;
  Channel* channel = may_bring(core, session, 2, reason) ? core.channels.create() : nullptr;
  if (channel == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                reason.empty() ? "the fabric's table of completion channels is full" : reason);
  }
  channel->session = &session;
  channel->generation = generation_of(channel->serial);
  channel->read_end = std::move(irp->in_handles[0]);
  channel->write_end = std::move(irp->in_handles[1]);
  session.channels.insert(channel->index);
  succeed(std::move(irp), channel->handle);
}

void destroy_channel(Core& core, Session& session, const control::IndexIn& in, io::IrpRef irp) {
  const Channel* channel = find_of(core.channels, session, in.index);
  if (channel == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("there is no completion channel {} in this process",
                            control::index_of(in.index)));
  }
  if (channel->cqs != 0) {
    return fail(core, std::move(irp), Status::DeviceBusy,
                fmt::format("completion channel {} is in use by {}", control::index_of(in.index),
                            count_of(channel->cqs, "completion queue")));
  }
  session.channels.erase(channel->index);
  core.channels.destroy(channel->index);
  succeed(std::move(irp));
}

// Comes on a poster's connection of its own, which is not attached: softibd has accepted it, so it
// is of the same uid, and it has the generation, so it has read device memory.
void get_channel(Core& core, Session&, const control::GenerationIn& in, io::IrpRef irp) {
  const Channel* channel = find_generation(core.channels, in);
  if (channel == nullptr) {
    return fail_quietly(std::move(irp), Status::NotFound,
                        fmt::format("completion channel {} is gone", in.index));
  }
  std::string reason;
  auto read_end = core.memory.host().duplicate(channel->read_end, reason);
  if (!read_end) return fail(core, std::move(irp), read_end.error(), std::move(reason));
  auto write_end = core.memory.host().duplicate(channel->write_end, reason);
  if (!write_end) return fail(core, std::move(irp), write_end.error(), std::move(reason));
  irp->out_handles[0] = *std::move(read_end);
  irp->out_handles[1] = *std::move(write_end);
  succeed(std::move(irp));
}

void create_backing(Core& core, Session& session, const control::BackingIn& in, io::IrpRef irp) {
  if (session.slot == hca::kNone) {
    return fail(core, std::move(irp), Status::InvalidState, kNotAttached);
  }
  platform::DeviceMemoryHost& host = core.memory.host();
  std::string reason;
  const auto size = host.seal_and_measure(irp->in_handles[0], reason);
  if (!size) return fail(core, std::move(irp), size.error(), std::move(reason));
  if (in.size == 0 || in.size % host.page_size() != 0 || *size < in.size) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("a backing of {} bytes in a file of {}; whole pages are needed, and "
                            "the file must have them",
                            in.size, *size));
  }
  Backing* backing = may_bring(core, session, 1, reason) ? core.backings.create() : nullptr;
  if (backing == nullptr) {
    return fail(core, std::move(irp), Status::InsufficientResources,
                reason.empty() ? "the fabric's table of backings is full" : reason);
  }
  backing->session = &session;
  backing->generation = generation_of(backing->serial);
  backing->size = in.size;
  backing->file = std::move(irp->in_handles[0]);
  session.backings.insert(backing->index);
  succeed_with(std::move(irp), control::BackingOut{backing->size, backing->generation, 0},
               backing->handle);
}

void destroy_backing(Core& core, Session& session, const control::IndexIn& in, io::IrpRef irp) {
  const Backing* backing = find_of(core.backings, session, in.index);
  if (backing == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                fmt::format("there is no backing {} in this process", control::index_of(in.index)));
  }
  session.backings.erase(backing->index);
  core.backings.destroy(backing->index);
  succeed(std::move(irp));
}

void get_backing(Core& core, Session&, const control::GenerationIn& in, io::IrpRef irp) {
  const Backing* backing = find_generation(core.backings, in);
  if (backing == nullptr) {
    return fail_quietly(std::move(irp), Status::NotFound,
                        fmt::format("backing {} is gone", in.index));
  }
  std::string reason;
  auto file = core.memory.host().duplicate(backing->file, reason);
  if (!file) return fail(core, std::move(irp), file.error(), std::move(reason));
  irp->out_handles[0] = *std::move(file);
  succeed_with(std::move(irp), control::BackingOut{backing->size, backing->generation, 0});
}

void release_channels_and_backings(Core& core, Session& session) {
  for (const std::uint32_t index : session.channels) core.channels.destroy(index);
  for (const std::uint32_t index : session.backings) core.backings.destroy(index);
  session.channels.clear();
  session.backings.clear();
}

}  // namespace ib::drivers
