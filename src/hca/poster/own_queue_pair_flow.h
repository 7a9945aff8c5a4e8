// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of OwnQueuePair that depend on who owns it.
#pragma once

#include "hca/layout/first_use.h"
#include "hca/poster/own_queue_pair.h"

#include <mutex>

namespace ib::hca {

// Instead of a lock, for a client whose calls all come from one thread.
struct NoLock {
  void lock() {}
  void unlock() {}
};

// The differences between owners.
template <class Owner>
concept QueuePairOwner = requires(Owner& owner, Quiescence& posters) {
  owner.send_lock();
  owner.recv_lock();
  owner.flush_lock();
  // A request waits: run() has to be called soon.
  owner.requests_wait();
  // A reset: no request waits any more. Under the send lock.
  owner.forget_waiting();
  // A reset: completions that were not polled are voided, so that they cannot pass for those of
  // what comes after it. Under the send lock.
  owner.forget_completions();
  // Posters may still be delivering into the receive queue. The owner may wait for them, but not
  // long, since one that is stopped has no bound. Under the flush lock.
  owner.wait_a_little(posters);
  // Some still are: flush() has to be called again. Under the flush lock.
  owner.flush_later();
};

template <class Owner>
Status OwnQueuePair::post(Owner& owner, const SendWqe& wqe, Way way) {
  static_assert(QueuePairOwner<Owner>);
  const bool waited = sends_->waiting();
  Status status = Status::Ok;
  {
    const OpScope scope(*plane_, executing_);
    begin_use(*entry_);
    status = sends_->post(wqe, way);
  }
  if (!waited && sends_->waiting()) owner.requests_wait();
  if (sends_->took_error()) flush_all(owner);
  return status;
}

template <class Owner>
Requester::Progress OwnQueuePair::run(Owner& owner, std::uint32_t most) {
  auto progress = Requester::Progress::Idle;
  {
    const OpScope scope(*plane_, executing_);
    progress = sends_->progress(most);
  }
  if (sends_->took_error()) flush(owner);
  return progress;
}

template <class Owner>
void OwnQueuePair::serve_awaited(Owner& owner) {
  wake_waiter();
  if (state() != verbs::QpState::Error) return;
  const std::lock_guard guard(owner.flush_lock());
  if (flushed_) flush_receives(owner);  // no poster delivers any more
}

template <class Owner>
void OwnQueuePair::modified(Owner& owner, std::uint32_t mask, const verbs::control::QpAttr& attr,
                            verbs::QpState state) {
  if (sends_) {
    const std::lock_guard guard(owner.send_lock());
    RetryLimits limits = sends_->limits();
    limits.change(mask, attr);
    sends_->set_limits(limits);
  }
  if (state == verbs::QpState::Error) {
    {
      const std::lock_guard guard(owner.flush_lock());
      posters_.reset();  // softibd has waited for them
      if (lacks_flush()) end_receives(owner);
    }
    have_sends_flushed(owner);
  }
  if (state != verbs::QpState::Reset) return;
  {
    const std::lock_guard sends(owner.send_lock());
    if (sends_) sends_->reset();
    owner.forget_waiting();
    owner.forget_completions();
    const std::lock_guard receives(owner.recv_lock());
    if (receives_) receives_->reset();
  }
  const std::lock_guard guard(owner.flush_lock());
  flushed_ = false;
  posters_.reset();
}

template <class Owner>
void OwnQueuePair::flush(Owner& owner) {
  const std::lock_guard guard(owner.flush_lock());
  if (lacks_flush() && posters_left(owner)) end_receives(owner);
}

// No poster delivers any more. Under the flush lock.
template <class Owner>
void OwnQueuePair::end_receives(Owner& owner) {
  flushed_ = true;
  flush_receives(owner);
  if (srq_ != kNone) raise_last_wqe_reached();
}

// Whether those have left that may have been delivering when the state became Error; from then on
// none begins. Under the flush lock.
template <class Owner>
bool OwnQueuePair::posters_left(Owner& owner) {
  if (!posters_) {
    posters_.emplace(plane_->arena(), plane_->host().barriers(), plane_->slot());
    if (!posters_->done()) owner.wait_a_little(*posters_);
  }
  if (!posters_->done()) {
    owner.flush_later();
    return false;
  }
  posters_.reset();
  return true;
}

template <class Owner>
void OwnQueuePair::flush_all(Owner& owner) {
  flush(owner);
  have_sends_flushed(owner);
}

template <class Owner>
void OwnQueuePair::have_sends_flushed(Owner& owner) {
  // Outside of the flush lock: who runs what waits holds a lock of requests_wait() and flushes.
  if (is_waiting()) owner.requests_wait();
}

// Under the flush lock.
template <class Owner>
void OwnQueuePair::flush_receives(Owner& owner) {
  const std::lock_guard guard(owner.recv_lock());
  write_flushes();
}

}  // namespace ib::hca
