// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/queue_pair.h"

#include "hca/queues/receive_flush.h"
#include "user/hca_client.h"

#include <bit>

namespace ib::user {

using control::Code;
using verbs::QpState;
using verbs::QpType;

namespace {

constexpr std::uint32_t kQuietRounds = 200'000;
constexpr std::uint32_t kKeyTag = 0xff;

// Fills the fields that an opcode may use; `wqe` may hold an older request in the others.
void to_wqe(const SendRequest& request, hca::SendWqe& wqe) {
  wqe.wr_id = request.wr_id;
  wqe.opcode = request.opcode;
  wqe.flags = request.flags;
  wqe.sge = request.sge.data();
  wqe.num_sge = static_cast<std::uint32_t>(request.sge.size());
  wqe.imm = request.imm;
  wqe.rkey = request.rkey;
  wqe.remote_address = request.remote_address;
  wqe.compare_add = request.compare_add;
  wqe.swap = request.swap;
  wqe.remote_qpn = request.remote_qpn;
  wqe.remote_qkey = request.remote_qkey;
  wqe.remote_srqn = request.remote_srqn;
  wqe.inline_data = (request.flags & verbs::send_flag::kInline) != 0;
  if (request.ah != nullptr) wqe.av = request.ah->av();
  if (request.opcode == verbs::WrOpcode::BindMw) {
    wqe.window = request.window != nullptr ? request.window->index() : hca::kNone;
    wqe.bind_region = request.bind_region != nullptr ? request.bind_region->index() : hca::kNone;
    wqe.bind_address = request.bind_address;
    wqe.bind_length = request.bind_length;
    wqe.bind_access = request.bind_access;
    // The caller chooses the low byte; the rest is the window's [man ibv_post_send].
    const std::uint32_t now = request.window != nullptr ? request.window->rkey() : 0;
    wqe.bind_rkey = (now & ~kKeyTag) | (request.bind_rkey & kKeyTag);
  }
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(Hca& hca, ProcessState& process,
                                                     const QpOptions& options, std::uint32_t handle,
                                                     const control::QpOut& out) {
  const std::uint32_t index = control::index_of(handle);
  hca::QpEntry* entry = process.arena().qp(index);
  if (entry == nullptr || hca::qp_index(out.qpn) != index) {
    return failed(Status::Malformed, "softibd gave an impossible queue pair");
  }
  std::unique_ptr<QueuePair> qp(new QueuePair(hca, process, options, handle, out));
  if (out.rq_ring != 0) {
    qp->rq_ = hca::OwnReceives::create(
        process.arena(),
        {out.rq_ring, out.rq_slots, out.rq_stride, out.caps.max_recv_wr, out.caps.max_recv_sge},
        entry->owner.rq_tail);
    if (!qp->rq_) return failed(Status::Malformed, "softibd gave an impossible receive queue");
  }
  return qp;
}

QueuePair::QueuePair(Hca& hca, ProcessState& process, const QpOptions& options,
                     std::uint32_t handle, const control::QpOut& out)
    : hca_(hca),
      process_(process),
      plane_(process.plane()),
      handle_(handle),
      index_(control::index_of(handle)),
      qpn_(out.qpn),
      cookie_(options.cookie),
      type_(options.type),
      caps_(out.caps),
      send_cq_(options.send_cq),
      recv_cq_(options.recv_cq),
      srq_(options.srq),
      send_lock_(process.host().barriers()),
      recv_lock_(process.host().barriers()),
      pd_(options.pd != nullptr ? options.pd->index() : control::kNoIndex),
      entry_(process.arena().qp(index_)) {
  if (type_ == QpType::XrcRecv || send_cq_ == nullptr) return;
  hca::RequesterConfig config;
  config.qp = index_;
  config.type = type_;
  config.pd = pd_;
  config.send_cq = send_cq_->index();
  config.max_wr = out.caps.max_send_wr;
  config.max_sge = out.caps.max_send_sge;
  config.max_inline = out.caps.max_inline;
  config.signal_all = options.signal_all;
  config.block_loopback = (options.flags & 1) != 0;
  requester_ = std::make_unique<hca::Requester>(process.plane(), config);
  if (type_ == verbs::QpType::Rc || type_ == verbs::QpType::Uc) short_ = requester_.get();
}

QueuePair::~QueuePair() = default;

Status QueuePair::post_send(const SendRequest& request, hca::Way way) {
  if (!requester_) return Status::InvalidState;
  announce();
  if (type_ == QpType::Ud && request.ah == nullptr) return Status::InvalidParameter;
  const bool waited = requester_->waiting();
  Status status = Status::Ok;
  {
    hca::OpScope scope(process_.plane(), executing_);
    to_wqe(request, wqe_);
    status = requester_->post(wqe_, way);
  }
  if (!waited && requester_->waiting()) process_.enroll(*this);
  if (requester_->took_error()) flush_after_error();
  if (status == Status::Ok && request.opcode == verbs::WrOpcode::BindMw &&
      request.window != nullptr) {
    request.window->set_rkey(wqe_.bind_rkey);
  }
  return status;
}

std::uint32_t QueuePair::send_room() const {
  return requester_ ? caps_.max_send_wr - requester_->queued() : 0;
}

hca::Requester::Progress QueuePair::run_waiting(std::uint32_t most) {
  using Progress = hca::Requester::Progress;
  if (!send_lock_.try_lock()) return Progress::Waits;
  Progress progress = Progress::Idle;
  {
    hca::OpScope scope(process_.plane(), executing_);
    progress = requester_->progress(most);
  }
  if (requester_->took_error()) flush_after_error();
  send_lock_.unlock();
  return progress;
}

// One that found no receive and waits for this one.
void QueuePair::serve_awaited() {
  const std::uint32_t waiter = entry_->waiter.rnr_waiter.exchange(0, std::memory_order_acq_rel);
  if (waiter != 0) process_.poster().kick(waiter - 1);
  if (state() != verbs::QpState::Error) return;
  std::lock_guard guard(flush_lock_);
  if (flushed_) flush_receives();
}

Result<control::ModifyQpOut> QueuePair::modify(std::uint32_t mask, const control::QpAttr& attr) {
  std::lock_guard guard(process_.control_lock());
  control::ModifyQpIn in;
  in.index = handle_;
  in.mask = mask;
  in.attr = attr;
  control::ModifyQpOut out;
  const auto done = process_.call_for(Code::ModifyQp, client(hca_).file(), in, out);
  if (!done) return done.error();
  remember(mask, attr, out);
  return out;
}

// What execution needs of a successful modify, and what a change of state entails here.
void QueuePair::remember(std::uint32_t mask, const control::QpAttr& attr,
                         const control::ModifyQpOut& out) {
  if (requester_) {
    send_lock_.lock();
    limits_.change(mask, attr);
    requester_->set_limits(limits_);
    send_lock_.unlock();
  }
  if (out.state == QpState::Error) flush_after_error();
  if (out.state == QpState::Reset) {
    send_lock_.lock();
    if (requester_) requester_->reset();
    process_.withdraw(*this);
    forget_completions();
    recv_lock_.lock();
    if (rq_) rq_->reset();
    recv_lock_.unlock();
    send_lock_.unlock();
    std::lock_guard guard(flush_lock_);
    flushed_ = false;
  }
}

void QueuePair::forget_completions() {
  if (send_cq_ != nullptr) send_cq_->discard(qpn_);
  if (recv_cq_ != nullptr && recv_cq_ != send_cq_) recv_cq_->discard(qpn_);
}

// Called by the thread that holds the send lock after its own request failed, by the service
// thread after others broke the queue pair, and after modify to Error.
void QueuePair::flush_after_error() {
  {
    std::lock_guard guard(flush_lock_);
    if (flushed_ || state() != QpState::Error) return;
    // A poster may be delivering into the receive queue; from now on none begins.
    hca::Quiescence quiet(process_.arena(), process_.host().barriers(), process_.plane().slot());
    for (std::uint32_t round = 0; !quiet.done() && round < kQuietRounds; ++round) {
      process_.host().relax(round);
    }
    flushed_ = true;
    flush_receives();
    if (srq_ != nullptr) {
      process_.poster().raise({control::EventObject::Qp, index_, entry_->id.generation,
                               verbs::EventType::QpLastWqeReached});
    }
  }
  // progress() flushes. Outside of flush_lock_: who runs what waits comes here with the list's
  // lock.
  if (requester_ && requester_->waiting()) process_.enroll(*this);
}

// Nobody else touches the responder line any more. Under flush_lock_.
void QueuePair::flush_receives() {
  hca::OpScope scope(process_.plane(), executing_);
  recv_lock_.lock();
  hca::flush_receives(process_.plane(), *entry_, qpn_, rq_.get(),
                      srq_ != nullptr ? srq_->index() : hca::kNone);
  recv_lock_.unlock();
}

void QueuePair::break_for_good() {
  entry_->id.state.store(static_cast<std::uint32_t>(QpState::Error), std::memory_order_release);
  send_lock_.lock();
  if (requester_ && requester_->waiting()) {
    hca::OpScope scope(process_.plane(), executing_);
    requester_->flush();
  }
  send_lock_.unlock();
  flush_after_error();
}

Result<control::QueryQpOut> QueuePair::query() {
  control::QueryQpOut out;
  const control::IndexIn in{handle_, 0};
  const auto done = process_.call_for(Code::QueryQp, client(hca_).file(), in, out);
  if (!done) return done.error();
  return out;
}

Status QueuePair::attach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return client(hca_).command(Code::AttachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

Status QueuePair::detach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return client(hca_).command(Code::DetachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

Status QueuePair::destroy() {
  if (!process_.is_mine()) return Status::Ok;
  std::lock_guard guard(process_.control_lock());
  const Status status = client(hca_).command(Code::DestroyQp, control::IndexIn{handle_, 0});
  if (!HcaClient::is_gone(status)) return status;
  forget_completions();
  process_.remove(*this);
  // Polls on other threads may hold a pointer: they hold their CQ's lock meanwhile.
  if (send_cq_ != nullptr) send_cq_->forget_last();
  if (recv_cq_ != nullptr) recv_cq_->forget_last();
  return Status::Ok;
}

}  // namespace ib::user
