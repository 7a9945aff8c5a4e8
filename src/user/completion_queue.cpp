// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/completion_queue.h"

#include "user/hca_client.h"
#include "user/take.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::user {

using verbs::WcStatus;

namespace {

thread_local const char this_thread = 0;  // its address tells threads apart

}  // namespace

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(Hca& hca, ProcessState& process,
                                                                 std::uint32_t handle,
                                                                 const control::CqOut& out,
                                                                 std::uint64_t cookie) {
  std::unique_ptr<CompletionQueue> cq(new CompletionQueue(hca, process, handle, cookie));
  if (cq->entry_ == nullptr || !cq->use_ring(out)) {
    return failed(Status::Malformed, "softibd gave an impossible completion queue");
  }
  return cq;
}

CompletionQueue::CompletionQueue(Hca& hca, ProcessState& process, std::uint32_t handle,
                                 std::uint64_t cookie)
    : hca_(hca),
      process_(process),
      handle_(handle),
      index_(control::index_of(handle)),
      cookie_(cookie),
      lock_(process.host().barriers()),
      entry_(process.arena().cq(index_)) {}

bool CompletionQueue::use_ring(const control::CqOut& out) {
  if (out.slots < 2 || !std::has_single_bit(out.slots)) return false;
  std::byte* ring = process_.arena().heap(out.ring, std::uint64_t{out.slots} * sizeof(hca::Cqe));
  if (ring == nullptr) return false;
  ring_ = reinterpret_cast<hca::Cqe*>(ring);
  mask_ = out.slots - 1;
  log_slots_ = static_cast<std::uint32_t>(std::countr_zero(out.slots));
  cqe_ = out.cqe;
  return true;
}

bool CompletionQueue::take(Completion& out) {
  return take_into([&out](const hca::Cqe& cqe, const TakenCompletion& taken) {
    hca::read_completion(cqe, out);
    out.wr_id = taken.wr_id;
    out.qpn = taken.qpn;
    out.status = taken.status;
  });
}

void CompletionQueue::found_nothing() {
  process_.poll_found_nothing();
  if (++empty_polls_ < kPollsPerYield) return;
  empty_polls_ = 0;
  process_.host().relax(platform::ClientHost::kYieldRound);
}

CompletionQueue::Ends CompletionQueue::look_up(std::uint32_t qpn) const {
  QueuePair* qp = process_.find_qp(qpn);
  if (qp == nullptr) return {};
  return {qpn, qp->send_cq_ == this ? qp->requester_.get() : nullptr,
          qp->recv_cq_ == this ? qp->rq_.get() : nullptr, qp->pd_};
}

bool CompletionQueue::identify(const hca::Cqe& cqe, TakenCompletion& taken, std::uint64_t& wr_id) {
  if (taken.qpn == 0) return false;  // discard()
  if (taken.received && cqe.srq != hca::kNone) return identify_shared(cqe, taken.status, wr_id);
  if (taken.qpn != last_.qpn) last_ = look_up(taken.qpn);
  if (!taken.received) return last_.sends != nullptr && last_.sends->polled(cqe.wqe, wr_id);
  return last_.receives != nullptr &&
         hca::finish(process_.plane(), *last_.receives, last_.pd, cqe, taken.status, wr_id);
}

bool CompletionQueue::identify_shared(const hca::Cqe& cqe, WcStatus& status, std::uint64_t& wr_id) {
  SharedReceiveQueue* srq = process_.find_srq(cqe.srq);
  if (srq == nullptr) return false;
  const std::lock_guard guard(srq->recv_lock_);
  return hca::finish(process_.plane(), *srq->ring_, srq->pd_, cqe, status, wr_id);
}

void CompletionQueue::begin_batch() {
  lock_.lock();
  batch_of_.store(&this_thread, std::memory_order_relaxed);
}

void CompletionQueue::end_batch() {
  batch_of_.store(nullptr, std::memory_order_relaxed);
  unlock();
}

// Shared memory orders: our store to `armed` before our next look at the ring; a producer's seq
// before its look at `armed` (hca::CqProducer::fire).
//
// IBA promises an event only for completions added after this call. Adapters are told the
// consumer's position with it and fire at once for what lies beyond, and programs count on that
// (UCX polls, arms and sleeps). What an event has reported already gives no second one here.
void CompletionQueue::arm(bool solicited_only) {
  const bool in_own_batch = batch_of_.load(std::memory_order_relaxed) == &this_thread;
  if (!in_own_batch) lock_.lock();
  // An armed queue stays armed for any completion if either request asked for it.
  if (!solicited_only || entry_->arm.armed.load(std::memory_order_relaxed) != 1) {
    entry_->arm.armed.store(solicited_only ? 2 : 1, std::memory_order_seq_cst);
  }
  armed_ = true;
  const std::uint64_t reported = entry_->arm.reported.load(std::memory_order_relaxed);
  fire_for_the_rest(std::max(consumed_, reported));
  if (!in_own_batch) lock_.unlock();
}

// An armed queue that has completions from position `from` on fires. Besides arm(), at the end of a
// poll: a program that arms, polls a few and then waits would wait for ever otherwise.
void CompletionQueue::fire_for_the_rest(std::uint64_t from) {
  const std::uint32_t wanted = entry_->arm.armed.load(std::memory_order_acquire);
  if (wanted == 0 || entry_->id.channel == hca::kNone) {
    armed_ = false;
    return;
  }
  bool left = false;
  std::uint64_t position = from;
  for (; position - consumed_ <= mask_ && !left; ++position) {
    const hca::Cqe& cqe = ring_[position & mask_];
    const auto expected = static_cast<std::uint32_t>(position >> log_slots_) + 1;
    if (cqe.seq.load(std::memory_order_acquire) != expected) break;
    left = wanted == 1 || (cqe.bits & hca::cqe_bit::kSolicited) != 0 || cqe.status != 0;
  }
  if (!left) return;
  armed_ = false;
  if (entry_->arm.armed.exchange(0, std::memory_order_acq_rel) == 0) return;
  entry_->arm.reported.store(position, std::memory_order_relaxed);
  process_.poster().notify(index_, entry_->id.channel, entry_->id.channel_generation);
}

Status CompletionQueue::resize(std::uint32_t cqe) {
  std::lock_guard guard(process_.control_lock());
  const control::ResizeCqIn in{handle_, cqe};
  control::CqOut out;
  lock();
  const auto done = process_.call_for(control::Code::ResizeCq, client(hca_).file(), in, out);
  const bool usable = done && use_ring(out);
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
  for (std::uint64_t position = consumed_;; ++position) {
    hca::Cqe& slot = ring_[position & mask_];
    const auto expected = static_cast<std::uint32_t>(position >> log_slots_) + 1;
    if (slot.seq.load(std::memory_order_acquire) != expected || position - consumed_ > mask_) break;
    if (slot.qpn != qpn) continue;
    std::uint64_t ignored = 0;
    // Frees the SRQ receive it holds.
    TakenCompletion taken{0, qpn, static_cast<WcStatus>(slot.status),
                          (slot.bits & hca::cqe_bit::kReceive) != 0};
    (void)identify(slot, taken, ignored);
    slot.qpn = 0;
  }
  unlock();
}

Status CompletionQueue::destroy() {
  if (!process_.is_mine()) return Status::Ok;
  std::lock_guard guard(process_.control_lock());
  const Status status =
      client(hca_).command(control::Code::DestroyCq, control::IndexIn{handle_, 0});
  if (!HcaClient::is_gone(status)) return status;
  process_.remove(*this);
  return Status::Ok;
}

}  // namespace ib::user
