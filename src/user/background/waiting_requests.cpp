// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/background/waiting_requests.h"

#include "user/work_queues.h"

#include <algorithm>

namespace ib::user {

namespace {

// Queue pairs with waiting work requests take turns, so that those that wait for the same receives
// all advance. How many requests one may run in its turn, and how often all get one before the
// caller goes on with its own work.
constexpr std::uint32_t kTurn = 16;
constexpr std::uint32_t kRounds = 64;

}  // namespace

void WaitingRequests::enroll(WorkQueues& queues) {
  lock_.lock();
  if (std::find(waiting_.begin(), waiting_.end(), &queues) == waiting_.end()) {
    waiting_.push_back(&queues);
    // Before the caller's look at whether the service thread sleeps; that thread says so first, and
    // then looks at this (ServiceThread::round). Both need the one order of seq_cst.
    count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_seq_cst);
  }
  lock_.unlock();
}

void WaitingRequests::withdraw(WorkQueues& queues) {
  lock_.lock();
  std::erase(waiting_, &queues);
  count();
  lock_.unlock();
}

void WaitingRequests::count() {
  count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_release);
}

void WaitingRequests::run() {
  if (!lock_.try_lock()) return;  // somebody else is at it
  bool more = true;
  for (std::uint32_t round = 0; more && round < kRounds; ++round) more = give_turns();
  // The first one is first to what has come meanwhile: next time another one.
  if (waiting_.size() > 1) {
    waiting_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  runs_.fetch_add(1, std::memory_order_relaxed);
  lock_.unlock();
}

// Gives one turn to each queue pair. Returns whether some could go on.
bool WaitingRequests::give_turns() {
  bool more = false;
  for (std::size_t n = waiting_.size(); n > 0; --n) {
    WorkQueues* queues = waiting_.front();
    waiting_.pop_front();
    const auto progress = queues->run_waiting(kTurn);
    if (progress != hca::Requester::Progress::Idle) waiting_.push_back(queues);
    more |= progress == hca::Requester::Progress::More;
  }
  count();
  return more;
}

}  // namespace ib::user
