// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two background threads of a client. Both sleep until they have work.
//
// service: rung by peers (doorbell) and by this process. It flushes queue pairs that others moved
// to Error, serves bounces, and runs waiting work requests on a clock tick when
// the application itself is not polling.
#include "hca/layout/doorbell.h"
#include "user/process.h"

namespace ib::user {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(1);
constexpr Duration kForever = std::chrono::hours(24);
constexpr std::uint32_t kLingerTicks = 20;  // after the last waiting request

}  // namespace

void Process::service_loop() {
  std::uint32_t linger = 0;
  const auto round = [this, &linger] {
    serve_bounces();
    const bool done = look_around();
    const bool unsent = poster_->retry_notifications();
    const bool waiting = waiting_count_.load(std::memory_order_acquire) != 0;
    if (waiting || unsent) {
      linger = kLingerTicks;
      // An application that polls makes its own progress; two would only get in each other's way.
      const std::uint32_t runs = runs_.load(std::memory_order_relaxed);
      if (waiting && runs == runs_seen_) run_waiting();
      runs_seen_ = runs_.load(std::memory_order_relaxed);
    } else if (linger > 0) {
      --linger;
    }
    const bool ticks = linger > 0 || !done;
    timed_.store(ticks ? 1 : 0, std::memory_order_seq_cst);
    if (ticks) return kTick;
    const bool wanted = waiting_count_.load(std::memory_order_seq_cst) != 0 ||
                        has_unflushed_.load(std::memory_order_seq_cst);
    return wanted ? Duration::zero() : kForever;
  };
  hca::answer_doorbell(
      *arena().slot(info_.slot), [this] { return stopping_.load(std::memory_order_acquire); },
      round,
      [this](std::atomic<std::uint32_t>& word, std::uint32_t rung, Duration longest) {
        host_.wait(word, rung, longest);
      });
}

// Handles changes that others have made to objects of this process in device memory. Returns false
// if it is to run again soon: a control call is under way and may be waiting for peers, or posters
// have not left a queue pair that is to be flushed.
bool Process::look_around() {
  const std::uint32_t attention = slot_->attention.load(std::memory_order_acquire);
  if (attention == attention_seen_.load(std::memory_order_acquire) &&
      !has_unflushed_.load(std::memory_order_acquire)) {
    return true;
  }
  std::unique_lock guard(control_lock_, std::try_to_lock);
  if (!guard) return false;
  attention_seen_.store(attention, std::memory_order_release);
  has_unflushed_.store(false, std::memory_order_release);
  for (QueuePair* qp : own_qps_) {
    if (qp->state() == verbs::QpState::Error) qp->flush_after_error();
  }
  return !has_unflushed_.load(std::memory_order_acquire);
}

void Process::event_loop() {
  const control::GenerationIn in{info_.slot, info_.slot_generation};
  while (!stopping_.load(std::memory_order_acquire)) {
    control::EventOut event;
    const platform::ControlReply reply = event_channel_->call(
        static_cast<std::uint32_t>(control::Code::WaitEvent), 0, std::as_bytes(std::span(&in, 1)),
        std::as_writable_bytes(std::span(&event, 1)));
    if (stopping_.load(std::memory_order_acquire)) return;
    if (reply.status == Status::Disconnected || reply.status != Status::Ok) {
      daemon_died();
      return;
    }
    events_.on_event(event);
  }
}

// The fabric is gone: everything that is outstanding ends with a flush error.
void Process::daemon_died() {
  daemon_gone_.store(true, std::memory_order_release);
  main_->shut_down();  // ends a control call that waits, and with it the hold on control_lock
  {
    std::lock_guard guard(control_lock_);
    for (QueuePair* qp : own_qps_) qp->break_for_good();
  }
  poster_->let_channels_go();  // no completion comes after these
  is_over_.store(true, std::memory_order_release);
  control::EventOut event;
  event.type = verbs::EventType::DeviceFatal;
  event.object = control::EventObject::Device;
  events_.on_event(event);
}

}  // namespace ib::user
