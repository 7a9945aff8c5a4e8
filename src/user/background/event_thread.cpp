// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/event_thread.h"

#include "base/buffers.h"

#include <mutex>
#include <utility>

namespace ib::user {

namespace {

constexpr Duration kPatience = std::chrono::milliseconds(100);

}  // namespace

EventThread::~EventThread() {
  stopping_.store(true, std::memory_order_release);
  channel_->shut_down();
}

Status EventThread::start(const control::GenerationIn& process) {
  auto thread = fabric_.host.start_thread("softib-events", [this, process] { run(process); });
  if (!thread) return thread.error();
  thread_ = *std::move(thread);
  return Status::Ok;
}

void EventThread::run(const control::GenerationIn& process) {
  while (!stopping_.load(std::memory_order_acquire)) {
    control::EventOut event;
    const platform::ControlReply reply =
        channel_->call(static_cast<std::uint32_t>(control::Code::WaitEvent), 0, bytes_of(process),
                       std::as_writable_bytes(std::span(&event, 1)));
    if (stopping_.load(std::memory_order_acquire)) return;
    if (reply.status != Status::Ok) {
      daemon_died();
      return;
    }
    events_.on_event(event);
  }
}

void EventThread::daemon_died() {
  daemon_gone_.store(true, std::memory_order_release);
  // Ends a control call that waits, and with it the hold on the control lock.
  fabric_.connection.shut_down();
  {
    std::lock_guard guard(fabric_.connection.control_lock());
    for (WorkQueues* queues : fabric_.objects.own_queues()) queues->break_for_good();
  }
  flush_all();
  fabric_.poster.files().let_channels_go();  // no completion comes after these
  is_over_.store(true, std::memory_order_release);
  control::EventOut event;
  event.type = verbs::EventType::DeviceFatal;
  event.object = control::EventObject::Device;
  events_.on_event(event);
}

// Waits for posters once, not at each queue pair; the application gets the control lock in between.
void EventThread::flush_all() {
  const Instant end = fabric_.host.now() + kPatience;
  for (std::uint32_t round = 0;; ++round) {
    {
      std::lock_guard guard(fabric_.connection.control_lock());
      if (fabric_.attention.flush_broken()) return;
    }
    if (fabric_.host.now() >= end) return;
    fabric_.host.relax(round);
  }
}

}  // namespace ib::user
