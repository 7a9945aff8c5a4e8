// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/service_thread.h"

#include "hca/layout/doorbell.h"

#include <utility>

namespace ib::user {

namespace {

constexpr Duration kTick = std::chrono::milliseconds(1);
constexpr std::uint32_t kLingerTicks = 20;  // after the last waiting request

}  // namespace

ServiceThread::~ServiceThread() {
  stopping_.store(true, std::memory_order_release);
  ring();
}

Status ServiceThread::start() {
  auto thread = work_.host.start_thread("softib-service", [this] { run(); });
  if (!thread) return thread.error();
  thread_ = *std::move(thread);
  return Status::Ok;
}

void ServiceThread::ring() {
  work_.poster.kick(work_.plane.slot());
}

void ServiceThread::run() {
  hca::answer_doorbell(
      *work_.plane.arena().slot(work_.plane.slot()),
      [this] { return stopping_.load(std::memory_order_acquire); }, [this] { return round(); },
      [this](std::atomic<std::uint32_t>& word, std::uint32_t rung, Duration longest) {
        work_.host.wait(word, rung, longest);
      });
}

// Returns how long the thread may sleep.
Duration ServiceThread::round() {
  work_.poster.serve_bounces();
  const bool done = work_.attention.look_around();
  const bool late = !work_.poster.late_events().move();
  const Duration until_sweep = sweep_.round();
  const bool waiting = work_.waiting.any_now();
  if (waiting || late) {
    linger_ticks_ = kLingerTicks;
    // An application that polls makes its own progress; two would only get in each other's way.
    if (waiting && work_.waiting.runs() == runs_seen_) work_.waiting.run();
    runs_seen_ = work_.waiting.runs();
  } else if (linger_ticks_ > 0) {
    --linger_ticks_;
  }
  const bool ticks = linger_ticks_ > 0 || !done;
  ticks_.store(ticks ? 1 : 0, std::memory_order_seq_cst);
  if (ticks) return kTick;
  const bool wanted = work_.waiting.any_now() || work_.attention.has_unflushed();
  return wanted ? Duration::zero() : until_sweep;
}

}  // namespace ib::user
