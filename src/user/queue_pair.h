// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QueuePair and SharedReceiveQueue: posting [IBA1 11.4.1] and control of queue pairs.
#pragma once

#include "hca/queues/own_queue_pair.h"
#include "hca/queues/own_shared_queue.h"
#include "user/api.h"
#include "user/biased_lock.h"
#include "user/completion_queue.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace ib::user {

class QueuePair {
 public:
  static Result<std::unique_ptr<QueuePair>> create(Hca& hca, Process& process,
                                                   const QpOptions& options, std::uint32_t handle,
                                                   const control::CreateQpIn& in,
                                                   const control::QpOut& out);
  ~QueuePair();

  std::uint32_t index() const { return index_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t qpn() const { return qpn_; }
  std::uint64_t cookie() const { return cookie_; }
  verbs::QpType type() const { return type_; }
  const control::QpCaps& caps() const { return caps_; }
  verbs::QpState state() const { return own_.state(); }  // as device memory has it now
  // The same after each change that modify() has made: softibd may not have executed the last one.
  verbs::QpState settled_state();

  // Posting one request: send_lock(), post_send() as often as wanted, send_unlock(). The caller of
  // a request that was refused stops there; those before it stand.
  //   InvalidParameter: opcode, SGE count, inline length or key index wrong for this QP; a
  //   datagram without an address
  //   InvalidState: the QP's state does not accept it; LimitExceeded: the queue is full
  void send_lock() { send_lock_.lock(); }
  void send_unlock() { send_lock_.unlock(); }
  // Way::Slow: the caller has already tried the fast path.
  Status post_send(const SendWqe& wqe, hca::Way way = hca::Way::Fastest);
  // The same for a BindMw of `window`, which has the new key afterwards.
  Status post_bind(const SendWqe& wqe, MemoryWindow& window, hca::Way way = hca::Way::Fastest);
  bool has_fast_path() const { return own_.fast_sends() != nullptr; }
  // The same as announce() for a send of several pieces, of a queue pair that has a fast path.
  void announce_room() const { own_.fast_sends()->announce_room(); }
  // The fast path for one request of an RC or UC queue pair (hca::Requester::post_fast). Returns
  // false if the request is none for it, and nothing has changed; then refresh_and_post(), and if
  // that fails, post_send() on the slow path. Inline, in user/post_fast.h.
  template <class Send>
  bool post_fast(Send send);
  template <class Send>
  bool refresh_and_post(Send send);
  // To the trace of softibd.
  void tell(const control::TraceErrorIn& error) { own_.plane().host().trace(error); }
  // A request will probably follow (hca::Requester::announce).
  void announce() {
    if (own_.sends() != nullptr) own_.sends()->announce();
    if (own_.receives() != nullptr) own_.receives()->answered();
  }
  bool enter_send() { return send_lock_.enter(); }  // false: send_lock()
  void leave_send() { send_lock_.leave(); }
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

  Result<control::ModifyQpOut> modify(std::uint32_t mask, const control::QpAttr& attr);
  Result<control::QueryQpOut> query();
  Status attach_mcast(const verbs::Gid& mgid, std::uint16_t mlid);
  Status detach_mcast(const verbs::Gid& mgid, std::uint16_t mlid);
  Status destroy();

  // For the service thread and polls (process.h): up to `most` of the requests that wait.
  hca::Requester::Progress run_waiting(std::uint32_t most);
  // The state is Error: completes everything outstanding with flush errors, once. Any thread.
  void flush_after_error();
  // softibd is gone: the queue pair stays in Error.
  void break_for_good();

 private:
  friend class CompletionQueue;
  struct Owner;
  QueuePair(Hca& hca, Process& process, const QpOptions& options, std::uint32_t handle,
            const control::QpOut& out);
  void forget_completions();
  // Not one of those that other processes can open, and change.
  bool is_own() const;
  bool stays_in_init(std::uint32_t mask, const control::QpAttr& attr) const;
  bool is_sure(std::uint32_t mask, const control::QpAttr& attr) const;
  Status catch_up();

  Hca& hca_;
  Process& process_;
  std::uint32_t handle_;
  std::uint32_t index_;
  std::uint32_t qpn_;
  std::uint64_t cookie_;
  verbs::QpType type_;
  control::QpCaps caps_;
  CompletionQueue* send_cq_;
  CompletionQueue* recv_cq_;
  BiasedLock send_lock_;
  BiasedLock recv_lock_;
  hca::OwnQueuePair own_;
  std::mutex flush_lock_;
  // The last change, under the control lock; `mask` 0: it was not one to Init.
  struct Init {
    std::uint32_t mask = 0;
    control::QpAttr attr;
  } init_;
  std::atomic<bool> access_waits_ = false;  // its access flags have not reached softibd yet
};

class SharedReceiveQueue {
 public:
  static Result<std::unique_ptr<SharedReceiveQueue>> create(Hca& hca, Process& process,
                                                            const SrqOptions& options,
                                                            std::uint32_t handle,
                                                            const control::SrqOut& out);
  ~SharedReceiveQueue();

  std::uint32_t index() const { return index_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t srqn() const { return srqn_; }
  std::uint64_t cookie() const { return cookie_; }
  std::uint32_t max_wr() const { return max_wr_; }
  std::uint32_t max_sge() const { return max_sge_; }

  Status post_recv(std::uint64_t wr_id, std::span<const Sge> sge);
  // To the trace of softibd.
  void tell(const control::TraceErrorIn& error);
  Result<control::SrqOut> modify(const control::ModifySrqIn& in);
  Result<control::SrqOut> query();
  Status destroy();

 private:
  friend class CompletionQueue;
  SharedReceiveQueue(Hca& hca, Process& process, const SrqOptions& options, std::uint32_t handle,
                     const control::SrqOut& out);

  Hca& hca_;
  Process& process_;
  std::uint32_t handle_;
  std::uint32_t index_;
  std::uint32_t srqn_;
  std::uint64_t cookie_;
  std::uint32_t max_wr_;
  std::uint32_t max_sge_;
  std::uint32_t pd_;
  CompletionQueue* cq_;
  BiasedLock recv_lock_;
  hca::OwnSharedQueue own_;
};

}  // namespace ib::user
