// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// WorkQueues: the send and the receive queue of a queue pair, as its consumer posts to them
// [IBA1 11.4.1], and what its threads and those of others do with their requests.
#pragma once

#include "hca/poster/own_queue_pair.h"
#include "user/api.h"
#include "user/biased_lock.h"
#include "user/completion_queue.h"

#include <cstdint>
#include <mutex>
#include <span>

namespace ib::user {

class WorkQueues {
 public:
  WorkQueues(Process& process, const QpOptions& options, const control::QpOut& out);
  WorkQueues(const WorkQueues&) = delete;
  WorkQueues& operator=(const WorkQueues&) = delete;

  // Opens those of the queue pair `index`, which softibd has just made from `in`. Returns false if
  // its attributes are impossible.
  bool open(std::uint32_t index, const control::CreateQpIn& in, const control::QpOut& out,
            bool signal_all);

  std::uint32_t qpn() const { return qpn_; }
  verbs::QpType type() const { return type_; }
  verbs::QpState state() const { return own_.state(); }  // as device memory has it now
  // The same after each change that was submitted: softibd may not have executed the last one.
  verbs::QpState settled_state();

  // Posting one request: under the send lock, post_send() as often as wanted. The caller of a
  // request that was refused stops there; those before it stand.
  //   InvalidParameter: opcode, SGE count, inline length or key index wrong for this QP; a
  //   datagram without an address
  //   InvalidState: the QP's state does not accept it; LimitExceeded: the queue is full
  BiasedLock& send_lock() { return send_lock_; }
  // Way::Slow: the caller has already tried the fast path.
  Status post_send(const SendWqe& wqe, hca::Way way = hca::Way::Fastest);
  // The same for a BindMw of `window`, which has the new key afterwards.
  Status post_bind(const SendWqe& wqe, MemoryWindow& window, hca::Way way = hca::Way::Fastest);
  bool has_fast_path() const { return own_.fast_path() != nullptr; }
  // The same as announce() for a send of several pieces, of a queue pair that has a fast path.
  void announce_room() const { own_.fast_path()->next_lines().prefetch_room(); }
  // The fast path for one request of an RC or UC queue pair (hca::FastPath::post). Returns
  // false if the request is none for it, and nothing has changed; then refresh_and_post(), and if
  // that fails, post_send() on the slow path. Inline, in user/post_fast.h.
  template <class Send>
  bool post_fast(Send send);
  template <class Send>
  bool refresh_and_post(Send send);
  // A request will probably follow (hca::Requester::announce).
  void announce() {
    if (own_.sends() != nullptr) own_.sends()->announce();
    if (own_.receives() != nullptr) own_.receives()->answered();
  }
  std::uint32_t send_room() const;  // free slots; under the send lock

  // Receives; thread safe.
  Status post_recv(std::uint64_t wr_id, std::span<const Sge> sge) {
    if (own_.receives() == nullptr) return Status::InvalidParameter;
    if (state() == verbs::QpState::Reset && settled_state() == verbs::QpState::Reset)
      return Status::InvalidState;
    recv_lock_.lock();
    const Status status = own_.receives()->post(wr_id, sge);
    recv_lock_.unlock();
    if (status == Status::Ok && is_awaited()) [[unlikely]]
      serve_awaited();
    return status;
  }
  // Posts what nearly every receive is, without a call. Returns false if post_recv() has to. After
  // it serve_awaited() follows if is_awaited().
  bool post_plain_recv(std::uint64_t wr_id, const Sge& sge) {
    hca::OwnReceives* const receives = own_.receives();
    if (receives == nullptr || state() == verbs::QpState::Reset || !recv_lock_.enter())
      return false;
    if (receives->is_unanswered()) announce();
    const bool posted = receives->post_one(wr_id, sge);
    recv_lock_.leave();
    return posted;
  }
  bool is_awaited() const { return own_.is_awaited(); }
  void serve_awaited();

  // Return nullptr if another CQ than `cq` gets the completions, or there is no such queue.
  hca::Requester* sends_of(const CompletionQueue& cq) const {
    return send_cq_ == &cq ? own_.sends() : nullptr;
  }
  hca::OwnReceives* receives_of(const CompletionQueue& cq) const {
    return recv_cq_ == &cq ? own_.receives() : nullptr;
  }
  std::uint32_t pd() const { return own_.pd(); }

  // A modify-QP has succeeded and led to `state`. Takes all locks, one after the other.
  void modified(std::uint32_t mask, const control::QpAttr& attr, verbs::QpState state);
  // For the service thread and polls (WaitingRequests): up to `most` of the requests that wait.
  hca::Requester::Progress run_waiting(std::uint32_t most);
  // The state is Error: completes everything outstanding with flush errors, once. Any thread.
  void flush_after_error();
  // softibd is gone: the queue pair stays in Error, and no send of it waits. flush_after_error() is
  // to follow.
  void break_for_good();
  // The queue pair is reset or destroyed: completions that were not polled are voided.
  void forget_completions();
  // It is not in the table of objects any more: polls that have found it end, and none keeps it.
  void forget_in_polls();

 private:
  struct Owner;

  Process& process_;
  std::uint32_t qpn_;
  verbs::QpType type_;
  std::uint32_t max_send_wr_;
  CompletionQueue* send_cq_;
  CompletionQueue* recv_cq_;
  BiasedLock send_lock_;
  BiasedLock recv_lock_;
  hca::OwnQueuePair own_;
  std::mutex flush_lock_;
};

}  // namespace ib::user
