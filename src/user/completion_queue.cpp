// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/completion_queue.h"

#include "user/hca.h"
#include "user/take.h"

namespace ib::user {

namespace {

thread_local const char this_thread = 0;  // its address identifies the thread

}  // namespace

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(Hca& hca, Process& process,
                                                                 std::uint32_t handle,
                                                                 const control::CqOut& out,
                                                                 std::uint64_t cookie) {
  std::unique_ptr<CompletionQueue> cq(new CompletionQueue(hca, process, handle, cookie));
  if (!cq->consumer_.open(process.arena(), cq->index_, out)) {
    return failed(Status::Malformed, "softibd gave an impossible completion queue");
  }
  cq->cqe_ = out.cqe;
  return cq;
}

CompletionQueue::CompletionQueue(Hca& hca, Process& process, std::uint32_t handle,
                                 std::uint64_t cookie)
    : hca_(hca),
      process_(process),
      handle_(handle),
      index_(control::index_of(handle)),
      cookie_(cookie),
      lock_(process.host().barriers()) {}

bool CompletionQueue::take(Completion& out) {
  return take_into([&out](const hca::Cqe& cqe, const TakenCompletion& taken) {
    hca::read_completion(cqe, out);
    out.wr_id = taken.wr_id;
    out.qpn = taken.qpn;
    out.status = taken.status;
  });
}

bool CompletionQueue::is_over() const {
  return process_.is_over();
}

void CompletionQueue::found_nothing() {
  process_.waiting().poll_found_nothing();
  if (++empty_polls_ < kPollsPerYield) return;
  empty_polls_ = 0;
  process_.host().relax(platform::ClientHost::kYieldRound);
}

CompletionQueue::Ends CompletionQueue::look_up(std::uint32_t qpn) const {
  const WorkQueues* queues = process_.objects().find_qp(qpn);
  if (queues == nullptr) return {};
  return {qpn, queues->sends_of(*this), queues->receives_of(*this), queues->pd()};
}

void CompletionQueue::begin_batch() {
  lock_.lock();
  batch_of_.store(&this_thread, std::memory_order_relaxed);
}

void CompletionQueue::end_batch() {
  batch_of_.store(nullptr, std::memory_order_relaxed);
  unlock();
}

void CompletionQueue::arm(bool solicited_only) {
  const bool in_own_batch = batch_of_.load(std::memory_order_relaxed) == &this_thread;
  if (!in_own_batch) lock_.lock();
  consumer_.arm(process_.poster(), solicited_only);
  if (!in_own_batch) lock_.unlock();
}

void CompletionQueue::fire_for_the_rest() {
  consumer_.fire_for_the_rest(process_.poster());
}

Status CompletionQueue::resize(std::uint32_t cqe) {
  std::lock_guard guard(process_.connection().control_lock());
  const control::ResizeCqIn in{handle_, cqe};
  control::CqOut out;
  lock();
  const auto done = process_.connection().call_for(control::Code::ResizeCq, hca_.file(), in, out);
  const bool usable = done && consumer_.use_ring(process_.arena(), out);
  if (usable) cqe_ = out.cqe;
  unlock();
  if (!done) return done.error();
  return usable ? Status::Ok : failed(Status::Malformed, "softibd gave an impossible ring");
}

void CompletionQueue::forget_last() {
  lock();
  last_ = {};
  unlock();
}

void CompletionQueue::discard(std::uint32_t qpn) {
  lock();
  consumer_.discard(qpn, [this](const hca::Cqe& slot) {
    TakenCompletion taken = head_of(slot);
    std::uint64_t ignored = 0;
    (void)identify(slot, taken, ignored);
  });
  unlock();
}

Status CompletionQueue::destroy() {
  if (!process_.connection().is_mine()) return Status::Ok;
  std::lock_guard guard(process_.connection().control_lock());
  const Status status = hca_.command(control::Code::DestroyCq, control::IndexIn{handle_, 0});
  if (!Hca::is_gone(status)) return status;
  process_.objects().remove(*this);
  process_.poster().late_events().remove(index_);
  return Status::Ok;
}

}  // namespace ib::user
