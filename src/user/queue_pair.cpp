// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/queue_pair.h"

#include "hca/queues/own_queue_pair_flow.h"
#include "user/hca.h"
#include "verbs/qp_state.h"
#include "verbs/qp_values.h"

namespace ib::user {

using control::Code;
using verbs::QpState;
using verbs::QpType;
using verbs::qp_attr::kAccessFlags;
using verbs::qp_attr::kState;
namespace qp_attr = verbs::qp_attr;

namespace {

constexpr std::uint32_t kQuietRounds = 4096;  // of which none sleeps
}  // namespace

// The differences from a kernel client's queue pair: threads, which wait for each other
// (hca/queues/own_queue_pair_flow.h).
struct QueuePair::Owner {
  QueuePair& qp;

  BiasedLock& send_lock() const { return qp.send_lock_; }
  BiasedLock& recv_lock() const { return qp.recv_lock_; }
  std::mutex& flush_lock() const { return qp.flush_lock_; }
  void requests_wait() const { qp.process_.enroll(qp); }
  void forget_waiting() const { qp.process_.withdraw(qp); }
  void forget_completions() const { qp.forget_completions(); }
  void wait_a_little(hca::Quiescence& posters) const {
    platform::ClientHost& host = qp.process_.host();
    for (std::uint32_t round = 0; !posters.done() && round < kQuietRounds; ++round) {
      host.relax(round);
    }
  }
  void flush_later() const { qp.process_.flush_later(); }
};

Result<std::unique_ptr<QueuePair>> QueuePair::create(Hca& hca, Process& process,
                                                     const QpOptions& options, std::uint32_t handle,
                                                     const control::CreateQpIn& in,
                                                     const control::QpOut& out) {
  std::unique_ptr<QueuePair> qp(new QueuePair(hca, process, options, handle, out));
  if (!qp->own_.open(process.plane(), qp->index_, in, out, options.signal_all)) {
    return failed(Status::Malformed, "softibd gave an impossible queue pair");
  }
  return qp;
}

QueuePair::QueuePair(Hca& hca, Process& process, const QpOptions& options, std::uint32_t handle,
                     const control::QpOut& out)
    : hca_(hca),
      process_(process),
      handle_(handle),
      index_(control::index_of(handle)),
      qpn_(out.qpn),
      cookie_(options.cookie),
      type_(options.type),
      caps_(out.caps),
      send_cq_(options.send_cq),
      recv_cq_(options.recv_cq),
      send_lock_(process.host().barriers()),
      recv_lock_(process.host().barriers()) {}

QueuePair::~QueuePair() = default;

Status QueuePair::post_send(const SendWqe& wqe, hca::Way way) {
  if (own_.sends() == nullptr) return Status::InvalidState;
  announce();
  process_.settle();
  if (type_ == QpType::Ud && wqe.av.port == 0) return Status::InvalidParameter;
  Owner owner{*this};
  return own_.post(owner, wqe, way);
}

Status QueuePair::post_bind(const SendWqe& wqe, MemoryWindow& window, hca::Way way) {
  const Status status = post_send(wqe, way);
  if (status == Status::Ok) window.set_rkey(wqe.bind_rkey);
  return status;
}

std::uint32_t QueuePair::send_room() const {
  return own_.sends() != nullptr ? caps_.max_send_wr - own_.sends()->queued() : 0;
}

hca::Requester::Progress QueuePair::run_waiting(std::uint32_t most) {
  if (!send_lock_.try_lock()) return hca::Requester::Progress::Waits;
  Owner owner{*this};
  const auto progress = own_.run(owner, most);
  send_lock_.unlock();
  return progress;
}

void QueuePair::serve_awaited() {
  Owner owner{*this};
  own_.serve_awaited(owner);
}

Result<control::ModifyQpOut> QueuePair::modify(std::uint32_t mask, const control::QpAttr& attr) {
  std::lock_guard guard(process_.control_lock());
  if (stays_in_init(mask, attr)) {
    if ((mask & kAccessFlags) != 0 && attr.access != init_.attr.access) {
      init_.attr.access = attr.access;
      access_waits_ = true;
    }
    return control::ModifyQpOut{QpState::Init, QpState::Init};
  }
  process_.settle();
  control::ModifyQpIn in;
  in.index = handle_;
  in.mask = mask;
  in.attr = attr;
  const bool goes_to_rtr = (mask & kState) != 0 && attr.state == QpState::Rtr;
  if (access_waits_ && goes_to_rtr && (mask & kAccessFlags) == 0) {
    in.mask |= kAccessFlags;
    in.attr.access = init_.attr.access;
  } else {
    IB_CHECK(catch_up());
  }
  control::ModifyQpOut out{state(), in.attr.state};
  if (!is_sure(in.mask, in.attr) || !process_.submit(Code::ModifyQp, hca_.file(), in)) {
    const auto done = process_.call_for(Code::ModifyQp, hca_.file(), in, out);
    if (!done) return done.error();
  }
  init_ = {};
  access_waits_ = false;
  if (out.state == QpState::Init) init_ = {mask, attr};
  Owner owner{*this};
  own_.modified(owner, mask, attr, out.state);
  return out;
}

// librdmacm moves each queue pair to Init twice: the second time with the same attributes, or with
// the access flags that the peer has agreed to. These matter to no one before Rtr, and are never
// refused, so they go with that change. Others may change those that they can open, of XRC.
bool QueuePair::stays_in_init(std::uint32_t mask, const control::QpAttr& attr) const {
  // Reset: softibd has not made that change yet.
  const bool is_in_init = state() == QpState::Init || state() == QpState::Reset;
  return is_own() && mask == init_.mask && mask != 0 && is_in_init && process_.is_mine() &&
         attr.state == QpState::Init && attr.port == init_.attr.port &&
         attr.pkey_index == init_.attr.pkey_index && attr.qkey == init_.attr.qkey;
}

bool QueuePair::is_own() const {
  return type_ == QpType::Rc || type_ == QpType::Uc || type_ == QpType::Ud;
}

// Changes that softibd refuses only if the queue pair or its HCA has ended meanwhile, which a
// program finds out as if it had happened a moment later. So nobody waits for its answer.
bool QueuePair::is_sure(std::uint32_t mask, const control::QpAttr& attr) const {
  constexpr std::uint32_t kOfInit =
      kState | kAccessFlags | qp_attr::kPkeyIndex | qp_attr::kPort | qp_attr::kQkey;
  constexpr std::uint32_t kOfRts = kState | kAccessFlags | qp_attr::kSqPsn | qp_attr::kTimeout |
                                   qp_attr::kRetryCnt | qp_attr::kRnrRetry |
                                   qp_attr::kMaxQpRdAtomic | qp_attr::kMinRnrTimer;
  const QpState from = state();
  const bool to_init = from == QpState::Reset && attr.state == QpState::Init;
  const bool to_rts = from == QpState::Rtr && attr.state == QpState::Rts;
  if (!is_own() || !(to_init || to_rts) || (mask & ~(to_init ? kOfInit : kOfRts)) != 0 ||
      verbs::check_qp_modify(type_, from, attr.state, mask).verdict != verbs::QpModifyVerdict::Ok) {
    return false;
  }
  std::string reason;
  if (to_rts) return verbs::check_qp_values(mask, attr, reason);
  return !verbs::sets_controlled_qkey(mask, attr) && hca_.has_pkey(attr.port, attr.pkey_index);
}

QpState QueuePair::settled_state() {
  process_.settle();
  return state();
}

// Before softibd looks at all attributes, or changes others.
Status QueuePair::catch_up() {
  if (!access_waits_ || settled_state() != QpState::Init) return Status::Ok;
  const control::ModifyQpIn in{handle_, init_.mask, init_.attr};
  control::ModifyQpOut out;
  const auto done = process_.call_for(Code::ModifyQp, hca_.file(), in, out);
  if (!done) return done.error();
  access_waits_ = false;
  return Status::Ok;
}

void QueuePair::forget_completions() {
  if (send_cq_ != nullptr) send_cq_->discard(qpn_);
  if (recv_cq_ != nullptr && recv_cq_ != send_cq_) recv_cq_->discard(qpn_);
}

void QueuePair::flush_after_error() {
  Owner owner{*this};
  own_.flush_all(owner);
}

void QueuePair::break_for_good() {
  own_.entry().id.state.store(QpState::Error, std::memory_order_release);
  send_lock_.lock();
  if (own_.is_waiting()) {
    const hca::OpScope scope(process_.plane(), own_.executing());
    own_.sends()->flush();
  }
  send_lock_.unlock();
  flush_after_error();
}

Result<control::QueryQpOut> QueuePair::query() {
  if (access_waits_) {
    std::lock_guard guard(process_.control_lock());
    IB_CHECK(catch_up());
  }
  control::QueryQpOut out;
  const control::IndexIn in{handle_, 0};
  const auto done = process_.call_for(Code::QueryQp, hca_.file(), in, out);
  if (!done) return done.error();
  return out;
}

Status QueuePair::attach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return hca_.command(Code::AttachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

Status QueuePair::detach_mcast(const verbs::Gid& mgid, std::uint16_t mlid) {
  return hca_.command(Code::DetachMcast, control::McastIn{handle_, mlid, 0, mgid});
}

Status QueuePair::destroy() {
  if (!process_.is_mine()) return Status::Ok;
  std::lock_guard guard(process_.control_lock());
  const Status status = hca_.command(Code::DestroyQp, control::IndexIn{handle_, 0});
  if (!Hca::is_gone(status)) return status;
  forget_completions();
  process_.remove(*this);
  // Polls on other threads may hold a pointer: they hold their CQ's lock meanwhile.
  if (send_cq_ != nullptr) send_cq_->forget_last();
  if (recv_cq_ != nullptr) recv_cq_->forget_last();
  return Status::Ok;
}

}  // namespace ib::user
