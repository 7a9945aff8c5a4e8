// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Later: things to do at a time, and things to do once posters are quiescent
// (hca/layout/quiescence.h).
//
// after_quiescence() is how everything here waits for posters without blocking: the change is
// stored first, then `then` runs as soon as every thread that was inside a work request that may
// touch objects of the process in slot `owner` has left it (at once if there is none). A thread
// that is stopped inside one (a debugger) holds up its own process and that of its peer; one of a
// dead process holds up none, whatever its word contains.
#pragma once

#include "base/time.h"
#include "drivers/soft_hca/lifetime/once.h"
#include "hca/layout/arena.h"
#include "hca/layout/quiescence.h"
#include "platform/executor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

namespace ib::drivers {

class Later {
 public:
  // `is_empty`: returns whether no process in this slot can still execute.
  Later(platform::Executor& executor, platform::Barriers& barriers,
        std::function<bool(std::uint32_t slot)> is_empty)
      : executor_(executor), barriers_(barriers), is_empty_(std::move(is_empty)) {}

  Instant now() const { return executor_.now(); }
  void at(Instant when, Once what);
  void in(Duration delay, Once what) { at(now() + delay, std::move(what)); }
  void after_quiescence(const hca::Arena& arena, std::uint32_t owner, Once then);

  // Everything that waits for posters runs now, nothing that waits for a time ever does: the end.
  void abandon();
  std::size_t waiting_for_posters() const { return quiescences_.size(); }
  // A thread inside a work request, and how many things have waited for it, the first since when.
  struct Holder {
    std::uint32_t slot;
    std::uint32_t qp;  // index; kNone: of no connected queue pair
    std::uint32_t waiting;
    Instant since;
  };
  std::vector<Holder> holders() const;
  // Called once for each change that has waited so long, with the first one that it waits for.
  static constexpr Duration kSlow = std::chrono::seconds(1);
  void on_slow(std::function<void(std::uint32_t owner, const Holder&)> what) {
    on_slow_ = std::move(what);
  }

 private:
  static constexpr Duration kFirstPoll = std::chrono::microseconds(20);
  static constexpr Duration kSlowestPoll = std::chrono::milliseconds(1);

  struct Waiting {
    hca::Quiescence posters;
    Once then;
    Instant since;
    std::uint32_t owner;
    bool said_slow = false;
  };

  static Holder holder(const Waiting& waiting, const hca::Quiescence::Busy& busy) {
    return {busy.number, hca::executing::queue_pair_of(busy.seen), 0, waiting.since};
  }
  void arm();
  void run_due();
  void poll();

  platform::Executor& executor_;
  platform::Barriers& barriers_;
  std::function<bool(std::uint32_t slot)> is_empty_;
  std::multimap<Instant, Once> due_;
  std::unique_ptr<platform::Timer> timer_;
  Instant armed_for_{};
  std::list<Waiting> quiescences_;
  std::function<void(std::uint32_t, const Holder&)> on_slow_;
  std::unique_ptr<platform::Timer> poll_timer_;
  Duration poll_delay_ = kFirstPoll;
};

}  // namespace ib::drivers
