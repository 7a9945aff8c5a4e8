// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/process.h"

#include "user/hca.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace ib::user {

namespace {

hca::Path path_from(const std::string& setting) {
  if (setting == "adopted") return hca::Path::Adopted;
  if (setting == "process_vm") return hca::Path::ProcessVm;
  if (setting == "bounce") return hca::Path::Bounce;
  return hca::Path::Auto;
}

}  // namespace

Result<std::unique_ptr<Process>> Process::attach(platform::ClientHost& host,
                                                 const ProcessOptions& options, EventSink& events,
                                                 std::string& reason) {
  std::unique_ptr<Process> process(new Process(host));
  const Status status = process->start(options, events, reason);
  if (status != Status::Ok) return failed(status, reason);
  return std::unique_ptr<Process>(std::move(process));
}

Status Process::start(const ProcessOptions& options, EventSink& events, std::string& reason) {
  IB_CHECK(connection_.connect(reason));
  auto poster = host_.connect(reason);
  if (!poster) return poster.error();
  auto channel = host_.connect(reason);
  if (!channel) return channel.error();
  IB_CHECK(mapping_.attach(host_, connection_, options, info_, reason));
  IB_CHECK(make_tables(*std::move(poster), reason));
  return start_threads(events, *std::move(channel), reason);
}

Status Process::make_tables(std::unique_ptr<platform::ControlChannel> poster, std::string& reason) {
  const hca::Arena arena = mapping_.arena();
  attention_.begin(*arena.slot(info_.slot));
  poster_ = std::make_unique<Poster>(*this, host_, arena, info_.slot, std::move(poster));
  plane_ = std::make_unique<hca::MemoryPlane>(arena, *poster_, info_.slot,
                                              path_from(host_.setting("SOFTIB_MEMORY_PATH")));
  if (!plane_->valid()) {
    reason = fmt::format(
        "no room for {} MiB of tables, which are reserved rather than used: "
        "raise the limit of data (RLIMIT_DATA, `ulimit -d unlimited`)",
        hca::MemoryPlane::kTableBytes >> 20);
    return Status::InsufficientResources;
  }
  plane_->introduce({host_.pid(), host_.nameplate()});
  regions_ = std::make_unique<Regions>(*this);
  if (!objects_.valid()) {
    reason = "out of memory";
    return Status::InsufficientResources;
  }
  return Status::Ok;
}

Status Process::start_threads(EventSink& events, std::unique_ptr<platform::ControlChannel> channel,
                              std::string& reason) {
  service_ = std::make_unique<ServiceThread>(
      ServiceThread::Work{host_, *poster_, *plane_, attention_, waiting_});
  if (const Status service = service_->start(); service != Status::Ok) {
    reason = "cannot start the service thread (RLIMIT_NPROC?)";
    return service;
  }
  events_ = std::make_unique<EventThread>(
      EventThread::Fabric{host_, connection_, attention_, objects_, *poster_}, events,
      std::move(channel));
  const Status event_thread = events_->start({info_.slot, info_.slot_generation});
  if (event_thread != Status::Ok) reason = "cannot start the event thread (RLIMIT_NPROC?)";
  return event_thread;
}

Result<std::unique_ptr<Hca>> Process::open_hca(std::uint64_t node_guid) {
  return Hca::open(*this, node_guid);
}

Result<std::unique_ptr<CompletionChannel>> Process::create_channel() {
  platform::NativeHandle read_end;
  platform::NativeHandle write_end;
  if (const Status made = host_.make_pipe(read_end, write_end); made != Status::Ok) {
    return failed(made, "cannot make a pipe for a completion channel (RLIMIT_NOFILE?)");
  }
  const std::array<int, 2> handles{read_end.get(), write_end.get()};
  auto handle = connection_.call_bytes(control::Code::CreateChannel, 0, {}, {}, handles);
  if (!handle) return handle.error();
  return std::make_unique<CompletionChannel>(*this, static_cast<std::uint32_t>(*handle),
                                             std::move(read_end));
}

Status CompletionChannel::destroy() {
  const control::IndexIn in{handle_, 0};
  auto done = process_.connection().call(control::Code::DestroyChannel, 0, in);
  if (!done && done.error() != Status::Disconnected) return done.error();
  process_.poster().files().forget_channel(index());
  return Status::Ok;
}

}  // namespace ib::user
