// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// OwnQueuePair: the owner's end of a queue pair [IBA1 10.3.1]: its requests, its receives, and what
// a change of its state entails for both. The same for programs (user/queue_pair.h) and kernel
// clients (al/verbs.h).
//
// They differ in the `Owner` that functions here get: its locks, how it waits for posters, and the
// thread that runs requests that wait. own_queue_pair_flow.h has these functions.
//
// Thread rule: requests under the owner's send lock, receives under its receive lock, in this
// order. A function that gets the owner takes the locks that its comment names.
#pragma once

#include "hca/layout/quiescence.h"
#include "hca/memory/op_scope.h"
#include "hca/poster/requester.h"
#include "hca/queues/receive_ring.h"
#include "verbs/control.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace ib::hca {

class OwnQueuePair {
 public:
  // Opens a queue pair that softibd has just made from `in`. Returns false if its attributes are
  // impossible.
  bool open(MemoryPlane& plane, std::uint32_t index, const verbs::control::CreateQpIn& in,
            const verbs::control::QpOut& made, bool signal_all = false);
  void close();

  MemoryPlane& plane() const { return *plane_; }
  // For OpScopes in which its requests are executed.
  std::uint64_t executing() const { return executing_; }
  QpEntry& entry() const { return *entry_; }
  verbs::QpState state() const {  // as device memory has it now
    const verbs::QpState state = entry_->id.state.load(std::memory_order_acquire);
    return state <= verbs::QpState::Error ? state : verbs::QpState::Error;
  }
  std::uint32_t pd() const { return pd_; }
  Requester* sends() const { return sends_.get(); }   // nullptr: an XRC target
  FastPath* fast_path() const { return fast_path_; }  // nullptr: of another type than RC and UC
  OwnReceives* receives() const { return receives_.get(); }  // nullptr: SRQ, XRC
  bool is_waiting() const { return sends_ && sends_->waiting(); }
  // A flush waits for posters. Under the flush lock.
  bool is_flushing() const { return posters_.has_value() && state() == verbs::QpState::Error; }

  // Posts a request of a queue pair that sends. Under the send lock.
  template <class Owner>
  Status post(Owner& owner, const SendWqe& wqe, Way way = Way::Fastest);
  // Runs up to `most` of the requests that wait. Under the send lock.
  template <class Owner>
  Requester::Progress run(Owner& owner, std::uint32_t most = ~0u);

  // A sender waits for a receive, or this queue pair gives all of them back.
  bool is_awaited() const {
    return entry_->waiter.rnr_waiter.load(std::memory_order_relaxed) != 0 ||
           state() == verbs::QpState::Error;
  }
  // After a receive was posted, if is_awaited(). Takes the flush and receive locks.
  template <class Owner>
  void serve_awaited(Owner& owner);

  // A modify-QP has succeeded and led to `state`. Takes all locks, one after the other.
  template <class Owner>
  void modified(Owner& owner, std::uint32_t mask, const verbs::control::QpAttr& attr,
                verbs::QpState state);
  // Ends all receives with flush errors if the state is Error, that has not been done since the
  // last Reset, and no poster may be delivering into them any more; else it calls
  // Owner::flush_later(). Takes the flush and receive locks.
  template <class Owner>
  void flush(Owner& owner);
  // The same, and has requests that wait run, which flushes them. The caller is not running them.
  template <class Owner>
  void flush_all(Owner& owner);

 private:
  // Under the flush lock.
  bool lacks_flush() const { return !flushed_ && state() == verbs::QpState::Error; }
  template <class Owner>
  bool posters_left(Owner& owner);
  template <class Owner>
  void end_receives(Owner& owner);
  template <class Owner>
  void have_sends_flushed(Owner& owner);
  template <class Owner>
  void flush_receives(Owner& owner);
  void wake_waiter();
  void raise_last_wqe_reached();
  void write_flushes();

  MemoryPlane* plane_ = nullptr;
  QpEntry* entry_ = nullptr;
  std::uint64_t executing_ = 0;
  FastPath* fast_path_ = nullptr;
  std::unique_ptr<Requester> sends_;
  std::unique_ptr<OwnReceives> receives_;
  std::uint32_t index_ = kNone;
  std::uint32_t qpn_ = 0;
  std::uint32_t pd_ = kNone;
  std::uint32_t srq_ = kNone;
  // Under the flush lock:
  bool flushed_ = false;               // since the last Reset
  std::optional<Quiescence> posters_;  // who may be delivering, while a flush waits for them
};

}  // namespace ib::hca
