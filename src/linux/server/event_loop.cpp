// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/event_loop.h"

#include "base/assert.h"
#include "linux/process/client_relax.h"
#include "platform/brief_polling.h"
#include "platform/level.h"

#include <asio.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

namespace ib::os {
namespace {

// The work outlives its timer while it runs, since it may destroy the timer.
class LoopTimer : public platform::Timer {
 public:
  LoopTimer(EventLoop& loop, Instant when, platform::Executor::Work work)
      : work_(std::make_shared<platform::Executor::Work>(std::move(work))) {
    // Expired as it was destroyed: the owner has gone, so the work is dropped.
    const auto run = [weak = std::weak_ptr(work_)] {
      if (const auto work_now = weak.lock()) (*work_now)();
    };
    // Work that is due needs no timer of the kernel's, which is a system call and a wakeup.
    if (when <= monotonic_now()) {
      loop.post(run);
      return;
    }
    timer_.emplace(loop.context(), asio::steady_timer::time_point(when.time_since_epoch()));
    timer_->async_wait([run](const asio::error_code&) { run(); });
  }

 private:
  std::optional<asio::steady_timer> timer_;
  std::shared_ptr<platform::Executor::Work> work_;
};

}  // namespace

struct EventLoop::State {
  asio::io_context context{1};
  std::optional<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  // A call of the kernel costs more than most requests, so it does not follow each hit.
  static constexpr int kHitsPerPoll = 8;
  static constexpr int kLooksPerPoll = 16;

  std::array<Watched*, kMostWatched> watched{};
  std::size_t watched_count = 0;
  std::size_t next_look = 0;
  int hits = 0;  // since the last poll of the kernel
  bool yields_soon = false;
  // Posted by the loop's thread: goes first, without a look at the kernel's events. Other work that
  // was posted before it goes through asio, and so does this then.
  std::deque<Work> ready;
  // Relaxed: a thread that posts, and has the loop do something next, has counted that before.
  std::atomic<int> posted = 0;
  // Runs before the loop yields or sleeps, or at this time.
  static constexpr Duration kLatest = std::chrono::microseconds(50);
  std::deque<Work> late;
  Instant late_until{};

  void run_all();
  bool has_work() const { return !ready.empty() || !late.empty(); }
  static void run_first(std::deque<Work>& queue);
  bool run_ready();
  bool run_late();
  bool poll_briefly();
  bool yield_and_look();
  bool look_at_watched();
  bool stop_watching();
  void wait_for_signal() {
    signals->async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      on_signal(signal);
      wait_for_signal();
    });
  }
};

// Returns true if there was work.
bool EventLoop::State::poll_briefly() {
  if (std::exchange(yields_soon, false) && yield_and_look()) return true;
  Instant now = monotonic_now();
  const Instant first_yield = now + platform::BriefPolling::kPatienceOfServer;
  const Instant end = now + platform::BriefPolling::kYieldingBudget;
  do {
    for (int look = 0; watched_count > 0 && hits < kHitsPerPoll && look < kLooksPerPoll; ++look) {
      if (look_at_watched()) {
        ++hits;
        return true;
      }
      relax_thread(0);
    }
    now = monotonic_now();
    if (now < first_yield && watched_count > 0 && hits < kHitsPerPoll) continue;
    if (hits < kHitsPerPoll && run_late()) return true;
    hits = 0;
    if (context.poll_one() > 0) return true;
  } while (yield_core() && now < end && !context.stopped());
  return false;
}

// A client on this core waits for it; but if others have a request, it need not be changed to and
// back for each. The scheduler may come back from a yield at once, so there are several. Returns
// true if there was work.
bool EventLoop::State::yield_and_look() {
  constexpr int kYields = 4;
  for (int yield = 0; hits < kHitsPerPoll; ++yield) {
    if (look_at_watched()) {
      ++hits;
      if (yield == 0) yields_soon = true;
      return true;
    }
    if (yield == kYields || !yield_core()) break;
  }
  return false;
}

void EventLoop::State::run_first(std::deque<Work>& queue) {
  const Work work = std::move(queue.front());
  queue.pop_front();
  work();
}

// Returns true if there was work. Work that posts more without end holds up nobody.
bool EventLoop::State::run_ready() {
  if (ready.empty()) return false;
  run_first(ready);
  if (++hits >= kHitsPerPoll) {
    hits = 0;
    static_cast<void>(look_at_watched());
    context.poll_one();
  }
  return true;
}

// Returns true if there was work.
bool EventLoop::State::run_late() {
  if (late.empty()) return false;
  run_first(late);
  return true;
}

// In turn, so that none starves. Returns true if there was work.
bool EventLoop::State::look_at_watched() {
  for (std::size_t looked = 0; looked < watched_count; ++looked) {
    if (++next_look >= watched_count) next_look = 0;
    if (watched[next_look]->look()) return true;
  }
  return false;
}

// Before the loop sleeps. Returns true if there was work, which may have made it watch again.
bool EventLoop::State::stop_watching() {
  while (watched_count > 0) {
    Watched& last = *watched[--watched_count];
    last.set_watched(false);
    if (last.look()) return true;
  }
  return false;
}

// context.run() that may poll before it sleeps. A piece of work that was there already counts as a
// short sleep, and the next poll for more of it as a miss.
void EventLoop::State::run_all() {
  platform::BriefPolling polling;
  while (!context.stopped()) {
    if (!late.empty() && monotonic_now() >= late_until && run_late()) continue;
    if (run_ready()) continue;
    if (polling.should_poll()) {
      if (poll_briefly()) {
        polling.hit();
        continue;
      }
      polling.missed();
    }
    if (!context.stopped() && (run_late() || stop_watching() || has_work())) continue;
    const Instant start = monotonic_now();
    if (context.run_one() == 0) return;
    polling.slept(monotonic_now() - start);
  }
}

// Asio's steady clock and ours are both CLOCK_MONOTONIC in nanoseconds.
static_assert(std::is_same_v<asio::steady_timer::duration, Duration>);

EventLoop::EventLoop() : state_(std::make_unique<State>()) {}
EventLoop::~EventLoop() {
  IB_ASSERT(thread_.load() == std::thread::id{});
}

void EventLoop::run() {
  IB_ASSERT(thread_.load() == std::thread::id{});
  thread_ = std::this_thread::get_id();
  {
    LevelGuard level(Level::Dispatch);
    // Without pending work the loop still waits: for post() from another thread.
    const auto guard = asio::make_work_guard(state_->context);
    state_->run_all();
  }
  state_->context.restart();  // last: the guard's end counts as a stop
  thread_ = std::thread::id{};
}

void EventLoop::stop() {
  state_->context.stop();
}

void EventLoop::on_signals(std::initializer_list<int> signals, std::function<void(int)> work) {
  IB_ASSERT(!state_->signals);
  state_->signals.emplace(state_->context);
  for (const int signal : signals) state_->signals->add(signal);
  state_->on_signal = std::move(work);
  state_->wait_for_signal();
}

void EventLoop::watch(Watched& one) {
  State& state = *state_;
  const auto end = state.watched.begin() + static_cast<std::ptrdiff_t>(state.watched_count);
  if (state.watched_count == kMostWatched || std::find(state.watched.begin(), end, &one) != end)
    return;
  state.watched[state.watched_count++] = &one;
  one.set_watched(true);
}

void EventLoop::unwatch(const Watched& one) {
  State& state = *state_;
  const auto end = state.watched.begin() + static_cast<std::ptrdiff_t>(state.watched_count);
  const auto it = std::find(state.watched.begin(), end, &one);
  if (it == end) return;
  *it = state.watched[--state.watched_count];
}

void EventLoop::yield_soon() {
  state_->yields_soon = true;
}

void EventLoop::post(Work work) {
  State& state = *state_;
  if (runs_here() && state.posted.load(std::memory_order_relaxed) == 0) {
    state.ready.push_back(std::move(work));
    return;
  }
  state.posted.fetch_add(1, std::memory_order_relaxed);
  asio::post(state.context, [&state, work = std::move(work)] {
    state.posted.fetch_sub(1, std::memory_order_relaxed);
    work();
  });
}

void EventLoop::post_late(Work work) {
  State& state = *state_;
  if (state.late.empty()) state.late_until = monotonic_now() + State::kLatest;
  state.late.push_back(std::move(work));
}

std::unique_ptr<platform::Timer> EventLoop::at(Instant when, Work work) {
  return std::make_unique<LoopTimer>(*this, when, std::move(work));
}

Instant EventLoop::now() {
  return monotonic_now();
}

asio::io_context& EventLoop::context() {
  return state_->context;
}

}  // namespace ib::os
