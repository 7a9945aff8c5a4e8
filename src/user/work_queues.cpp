// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/work_queues.h"

#include "hca/poster/own_queue_pair_flow.h"
#include "user/process.h"

namespace ib::user {

namespace {

constexpr std::uint32_t kQuietRounds = 4096;  // of which none sleeps

}  // namespace

// The differences from a kernel client's queue pair: threads, which wait for each other
// (hca/poster/own_queue_pair_flow.h).
struct WorkQueues::Owner {
  WorkQueues& qp;
  bool is_patient = true;  // false: the caller has many queue pairs to flush, and waits by itself

  BiasedLock& send_lock() const { return qp.send_lock_; }
  BiasedLock& recv_lock() const { return qp.recv_lock_; }
  std::mutex& flush_lock() const { return qp.flush_lock_; }
  void requests_wait() const {
    qp.process_.waiting().enroll(qp);
    qp.process_.service().wake();
  }
  void forget_waiting() const { qp.process_.waiting().withdraw(qp); }
  void forget_completions() const { qp.forget_completions(); }
  void wait_a_little(hca::Quiescence& posters) const {
    if (!is_patient) return;
    platform::ClientHost& host = qp.process_.host();
    for (std::uint32_t round = 0; !posters.done() && round < kQuietRounds; ++round) {
      host.relax(round);
    }
  }
  void flush_later() const {
    qp.process_.attention().flush_later();
    qp.process_.service().wake();
  }
};

WorkQueues::WorkQueues(Process& process, const QpOptions& options, const control::QpOut& out)
    : process_(process),
      qpn_(out.qpn),
      type_(options.type),
      max_send_wr_(out.caps.max_send_wr),
      send_cq_(options.send_cq),
      recv_cq_(options.recv_cq),
      send_lock_(process.host().barriers()),
      recv_lock_(process.host().barriers()) {}

bool WorkQueues::open(std::uint32_t index, const control::CreateQpIn& in, const control::QpOut& out,
                      bool signal_all) {
  return own_.open(process_.plane(), index, in, out, signal_all);
}

verbs::QpState WorkQueues::settled_state() {
  process_.connection().settle();
  return state();
}

Status WorkQueues::post_send(const SendWqe& wqe, hca::Way way) {
  if (own_.sends() == nullptr) return Status::InvalidState;
  announce();
  process_.connection().settle();
  if (type_ == verbs::QpType::Ud && wqe.av.port == 0) return Status::InvalidParameter;
  Owner owner{*this};
  return own_.post(owner, wqe, way);
}

Status WorkQueues::post_bind(const SendWqe& wqe, MemoryWindow& window, hca::Way way) {
  const Status status = post_send(wqe, way);
  if (status == Status::Ok) window.set_rkey(wqe.bind_rkey);
  return status;
}

std::uint32_t WorkQueues::send_room() const {
  return own_.sends() != nullptr ? max_send_wr_ - own_.sends()->queued() : 0;
}

hca::Requester::Progress WorkQueues::run_waiting(std::uint32_t most) {
  if (!send_lock_.try_lock()) return hca::Requester::Progress::Waits;
  Owner owner{*this};
  const auto progress = own_.run(owner, most);
  send_lock_.unlock();
  return progress;
}

void WorkQueues::serve_awaited() {
  Owner owner{*this};
  own_.serve_awaited(owner);
}

void WorkQueues::modified(std::uint32_t mask, const control::QpAttr& attr, verbs::QpState state) {
  Owner owner{*this};
  own_.modified(owner, mask, attr, state);
}

void WorkQueues::forget_completions() {
  if (send_cq_ != nullptr) send_cq_->discard(qpn_);
  if (recv_cq_ != nullptr && recv_cq_ != send_cq_) recv_cq_->discard(qpn_);
}

void WorkQueues::forget_in_polls() {
  // Polls on other threads may hold a pointer: they hold their CQ's lock meanwhile.
  if (send_cq_ != nullptr) send_cq_->forget_last();
  if (recv_cq_ != nullptr) recv_cq_->forget_last();
}

void WorkQueues::flush_after_error() {
  Owner owner{*this, false};
  own_.flush_all(owner);
}

void WorkQueues::break_for_good() {
  own_.entry().id.state.store(verbs::QpState::Error, std::memory_order_release);
  send_lock_.lock();
  if (own_.is_waiting()) {
    const hca::OpScope scope(process_.plane(), own_.executing());
    own_.sends()->flush();
  }
  send_lock_.unlock();
}

}  // namespace ib::user
