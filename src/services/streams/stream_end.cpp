// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects of one end, made and destroyed one request after the other: its place in memory, its
// completion queue, its queue pair, and the states of that.
#include "services/streams/stream_end.h"

#include "streams/shared_end.h"

#include <utility>

namespace ib::services {

namespace control = verbs::control;
namespace qp_attr = verbs::qp_attr;
using control::Code;
using verbs::QpState;

namespace {

constexpr std::uint8_t kTimeout = 20;  // 4.3 s
constexpr std::uint8_t kRetries = 7;
// A peer without a receive has broken the protocol: nothing is sent that it has not offered room
// for.
constexpr std::uint8_t kRnrRetries = 0;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms

}  // namespace

StreamEnd::~StreamEnd() {
  IB_ASSERT(step_ == Step::Gone || step_ == Step::New);
  if (step_ == Step::New) hca_.remove_user();
}

io::IrpRef StreamEnd::start() {
  busy_ = true;
  const auto done = [](io::Irp&, void* context) { static_cast<StreamEnd*>(context)->on_done(); };
  return irp_.start(done, this);
}

void StreamEnd::make(const rdma_cm::Path& path, Then then) {
  then_ = std::move(then);
  pkey_index_ = path.pkey_index;
  port_ = path.port;
  step_ = Step::Placing;
  busy_ = true;
  hca_.places().take([this](Status status, const std::string& reason,
                            const StreamMemory::Place& place) { on_place(status, reason, place); });
}

void StreamEnd::on_place(Status status, const std::string& reason,
                         const StreamMemory::Place& place) {
  busy_ = false;
  place_ = place;
  reason_ = reason;
  if (is_unmade_) return destroy();
  status == Status::Ok ? make_cq() : finish(status);
}

void StreamEnd::make_cq() {
  step_ = Step::MakingCq;
  cq_in_ = {};
  cq_in_.cqe = streams::kCompletions;
  hca_.call(Code::CreateCq, cq_in_, cq_, start());
}

void StreamEnd::make_qp() {
  step_ = Step::MakingQp;
  qp_in_ = {};
  qp_in_.pd = hca_.pd();
  qp_in_.send_cq = hca_.send_cq();
  qp_in_.recv_cq = cq_handle_;
  qp_in_.caps.max_send_wr = 1;
  qp_in_.caps.max_send_sge = 1;
  qp_in_.caps.max_recv_wr = streams::kReceives;
  qp_in_.caps.max_recv_sge = 1;
  hca_.call(Code::CreateQp, qp_in_, qp_, start());
}

void StreamEnd::to_init() {
  step_ = Step::ToInit;
  modify_in_ = {};
  modify_in_.index = qp_handle_;
  modify_in_.mask = qp_attr::kState | qp_attr::kPkeyIndex | qp_attr::kPort | qp_attr::kAccessFlags;
  modify_in_.attr.state = QpState::Init;
  modify_in_.attr.pkey_index = pkey_index_;
  modify_in_.attr.port = port_;
  hca_.call(Code::ModifyQp, modify_in_, modified_, start());
}

void StreamEnd::connect(const rdma_cm::Path& path, const Peer& peer, Then then) {
  then_ = std::move(then);
  step_ = Step::ToRtr;
  send_psn_ = peer.send_psn;
  modify_in_ = {};
  modify_in_.index = qp_handle_;
  modify_in_.mask = qp_attr::kState | qp_attr::kAv | qp_attr::kPathMtu | qp_attr::kDestQpn |
                    qp_attr::kRqPsn | qp_attr::kMaxDestRdAtomic | qp_attr::kMinRnrTimer;
  control::QpAttr& attr = modify_in_.attr;
  attr.state = QpState::Rtr;
  attr.av = rdma_cm::address_vector(path);
  attr.path_mtu = path.mtu;
  attr.dest_qpn = peer.qpn;
  attr.rq_psn = peer.receive_psn;
  attr.min_rnr_timer = kRnrTimer;
  hca_.call(Code::ModifyQp, modify_in_, modified_, start());
}

void StreamEnd::to_rts() {
  step_ = Step::ToRts;
  modify_in_ = {};
  modify_in_.index = qp_handle_;
  modify_in_.mask = qp_attr::kState | qp_attr::kTimeout | qp_attr::kRetryCnt | qp_attr::kRnrRetry |
                    qp_attr::kSqPsn | qp_attr::kMaxQpRdAtomic;
  modify_in_.attr.state = QpState::Rts;
  modify_in_.attr.timeout = kTimeout;
  modify_in_.attr.retry_cnt = kRetries;
  modify_in_.attr.rnr_retry = kRnrRetries;
  modify_in_.attr.sq_psn = send_psn_;
  hca_.call(Code::ModifyQp, modify_in_, modified_, start());
}

void StreamEnd::on_done() {
  busy_ = false;
  const bool ok = irp_.status == Status::Ok;
  switch (step_) {
    case Step::MakingCq:
      if (ok) cq_handle_ = static_cast<std::uint32_t>(irp_.information);
      break;
    case Step::MakingQp:
      if (ok) qp_handle_ = static_cast<std::uint32_t>(irp_.information);
      break;
    // The file that had them may be gone; then they are, too.
    case Step::DestroyingQp: qp_handle_ = 0; return destroy();
    case Step::DestroyingCq: cq_handle_ = 0; return destroy();
    case Step::New:
    case Step::Placing:
    case Step::ToInit:
    case Step::Made:
    case Step::ToRtr:
    case Step::ToRts:
    case Step::Connected:
    case Step::Gone: break;
  }
  if (is_unmade_) return destroy();
  if (!ok) {
    reason_ = irp_.reason;
    return finish(irp_.status);
  }
  if (step_ == Step::MakingCq) return make_qp();
  if (step_ == Step::MakingQp) return to_init();
  if (step_ == Step::ToRtr) return to_rts();
  step_ = step_ == Step::ToInit ? Step::Made : Step::Connected;
  finish(Status::Ok);
}

void StreamEnd::finish(Status status) {
  const Then then = std::exchange(then_, nullptr);
  then(status);
}

void StreamEnd::grow(Then then) {
  growing_ = true;
  hca_.rings().take([this, then = std::move(then)](Status status, const std::string& reason,
                                                   const StreamMemory::Place& place) {
    growing_ = false;
    ring_ = place;
    if (is_unmade_) return destroy();
    if (status != Status::Ok) reason_ = reason;
    then(status);
  });
}

void StreamEnd::unmake(std::function<void()> then) {
  is_unmade_ = true;
  then_ = nullptr;
  on_gone_ = std::move(then);
  destroy();
}

// The next step of the end, once nothing is under way.
void StreamEnd::destroy() {
  if (busy_ || growing_ || step_ == Step::Gone) return;
  if (qp_handle_ != 0 || cq_handle_ != 0) {
    const bool has_qp = qp_handle_ != 0;
    step_ = has_qp ? Step::DestroyingQp : Step::DestroyingCq;
    gone_in_ = {};
    gone_in_.index = has_qp ? qp_handle_ : cq_handle_;
    return hca_.call(has_qp ? Code::DestroyQp : Code::DestroyCq, gone_in_, start());
  }
  step_ = Step::Gone;
  if (ring_.is_valid()) hca_.rings().give_back(ring_);
  if (place_.is_valid()) hca_.places().give_back(place_);
  hca_.remove_user();
  const std::function<void()> then = std::move(on_gone_);
  then();
}

}  // namespace ib::services
