// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/lifetime/later.h"

#include <algorithm>

namespace ib::drivers {

void Later::at(Instant when, Once what) {
  due_.emplace(when, std::move(what));
  arm();
}

void Later::arm() {
  if (due_.empty()) {
    timer_.reset();
    return;
  }
  const Instant first = due_.begin()->first;
  if (timer_ != nullptr && armed_for_ == first) return;
  armed_for_ = first;
  timer_ = executor_.at(first, [this] { run_due(); });
}

void Later::run_due() {
  timer_.reset();
  // Only work that was due on entry: work that is to run again at once must not starve the loop.
  const Instant until = executor_.now();
  std::list<Once> batch;
  while (!due_.empty() && due_.begin()->first <= until) {
    batch.push_back(std::move(due_.begin()->second));
    due_.erase(due_.begin());
  }
  for (Once& what : batch) what();
  arm();
}

void Later::after_quiescence(const hca::Arena& arena, std::uint32_t owner, Once then) {
  hca::Quiescence posters(arena, barriers_, owner);
  posters.skip(is_empty_);
  if (posters.done()) {
    then();
    return;
  }
  quiescences_.push_back({std::move(posters), std::move(then), now(), owner});
  if (poll_timer_ != nullptr) return;
  poll_delay_ = kFirstPoll;
  poll_timer_ = executor_.at(executor_.now() + poll_delay_, [this] { poll(); });
}

void Later::poll() {
  poll_timer_.reset();
  std::list<Waiting> finished;
  for (auto it = quiescences_.begin(); it != quiescences_.end();) {
    const auto here = it++;
    here->posters.skip(is_empty_);
    if (here->posters.done()) {
      finished.splice(finished.end(), quiescences_, here);
    } else if (!here->said_slow && now() - here->since >= kSlow) {
      here->said_slow = true;
      if (on_slow_) on_slow_(here->owner, holder(*here, here->posters.busy().front()));
    }
  }
  poll_delay_ = finished.empty() ? std::min(poll_delay_ * 2, kSlowestPoll) : kFirstPoll;
  for (Waiting& waiting : finished) waiting.then();
  // The work itself may have armed the timer.
  if (!quiescences_.empty() && poll_timer_ == nullptr) {
    poll_timer_ = executor_.at(executor_.now() + poll_delay_, [this] { poll(); });
  }
}

std::vector<Later::Holder> Later::holders() const {
  std::map<const hca::ThreadWord*, Holder> by_word;
  for (const Waiting& waiting : quiescences_) {
    for (const hca::Quiescence::Busy& b : waiting.posters.busy()) {
      ++by_word.try_emplace(b.word, holder(waiting, b)).first->second.waiting;
    }
  }
  std::vector<Holder> found;
  found.reserve(by_word.size());
  for (const auto& [word, holder] : by_word) found.push_back(holder);
  return found;
}

void Later::abandon() {
  timer_.reset();
  poll_timer_.reset();
  while (!quiescences_.empty()) {
    Once then = std::move(quiescences_.front().then);
    quiescences_.pop_front();
    then();
  }
  due_.clear();
}

}  // namespace ib::drivers
