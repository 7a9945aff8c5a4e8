// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting, polling, and what becomes of work requests that wait or are flushed.
#include "al/poster.h"
#include "al/verbs.h"
#include "hca/layout/op_scope.h"
#include "hca/queues/receive_flush.h"

namespace ib::al {

using hca::Completion;
using verbs::QpState;

bool Cq::begin() {
  return consumer.open(ca->al().system().arena, index(), made);
}

void Cq::end() {
  handle = control::kNoIndex;
  consumer.close();
}

bool Srq::begin() {
  const hca::Arena& arena = ca->al().system().arena;
  entry = arena.srq(index());
  if (entry == nullptr) return false;
  receives = hca::SharedReceives::create(
      arena, {made.ring, made.slots, made.stride, made.max_wr, made.max_sge}, entry->producer.tail);
  return receives != nullptr;
}

void Srq::end() {
  handle = control::kNoIndex;
  receives.reset();
  entry = nullptr;
}

Status Qp::begin() {
  Al& al = ca->al();
  entry = al.system().arena.qp(index());
  if (entry == nullptr) return Status::Malformed;
  if (made.rq_ring != 0) {
    receives = hca::OwnReceives::create(al.system().arena,
                                        {made.rq_ring, made.rq_slots, made.rq_stride,
                                         made.caps.max_recv_wr, made.caps.max_recv_sge},
                                        entry->owner.rq_tail);
    if (!receives) return Status::Malformed;
  }
  limits = {};
  flushed = false;
  if (in.type == verbs::QpType::XrcRecv) return Status::Ok;
  hca::RequesterConfig config;
  config.qp = index();
  config.type = in.type;
  config.pd = control::index_of(in.pd);
  config.send_cq = control::index_of(in.send_cq);
  config.max_wr = made.caps.max_send_wr;
  config.max_sge = made.caps.max_send_sge;
  config.max_inline = made.caps.max_inline;
  requester = std::make_unique<hca::Requester>(al.plane(), config);
  return Status::Ok;
}

void Qp::end() {
  handle = control::kNoIndex;
  quiet.reset();
  requester.reset();
  receives.reset();
  entry = nullptr;
}

QpState Qp::state() const {
  const std::uint32_t state = entry->id.state.load(std::memory_order_acquire);
  return state <= static_cast<std::uint32_t>(QpState::Error) ? static_cast<QpState>(state)
                                                             : QpState::Error;
}

// What execution needs of a successful modification, and what a change of state entails here.
void Qp::remember() {
  limits.change(change.mask, change.attr);
  if (requester) requester->set_limits(limits);
  if (changed.state == QpState::Reset) {
    if (requester) requester->reset();
    forget_completions();
    if (receives) receives->reset();
    quiet.reset();
    flushed = false;
  }
  run();
  ca->al().arm_timer();
}

// Lets waiting requests go on, and notices that the queue pair was broken, by whomever.
void Qp::run() {
  if (requester && requester->waiting()) {
    hca::OpScope scope(ca->al().plane(), hca::executing::queue_pair(index()));
    (void)requester->progress();
  }
  if (!flushed && state() == QpState::Error) flush();
}

// A poster may be delivering into the receive queue; from now on none begins.
void Qp::flush() {
  Al& al = ca->al();
  if (!quiet) quiet.emplace(al.system().arena, al.system().host.barriers(), al.plane().slot());
  if (!quiet->done()) return;
  quiet.reset();
  flushed = true;
  hca::OpScope scope(al.plane(), hca::executing::kOwn);
  hca::flush_receives(al.plane(), *entry, made.qpn, receives.get(),
                      in.srq != control::kNoIndex ? control::index_of(in.srq) : hca::kNone);
  if (in.srq != control::kNoIndex) {
    al.poster().raise({control::EventObject::Qp, index(), entry->id.generation,
                       verbs::EventType::QpLastWqeReached});
  }
}

Status post_send(Qp& qp, const hca::SendWqe& wqe) {
  if (!qp.exists() || !qp.requester) return Status::InvalidParameter;
  Status status = Status::Ok;
  {
    hca::OpScope scope(qp.ca->al().plane(), hca::executing::queue_pair(qp.index()));
    status = qp.requester->post(wqe);
  }
  if (qp.requester->waiting() || qp.requester->took_error()) {
    qp.run();
    qp.ca->al().arm_timer();
  }
  return status;
}

Status post_recv(Qp& qp, std::uint64_t wr_id, std::span<const hca::Sge> sge) {
  if (!qp.exists() || !qp.receives) return Status::InvalidParameter;
  if (qp.state() == QpState::Reset) return Status::InvalidState;
  const Status status = qp.receives->post(wr_id, sge);
  if (status != Status::Ok) return status;
  const std::uint32_t waiter = qp.entry->waiter.rnr_waiter.load(std::memory_order_relaxed);
  if (waiter != 0) {
    qp.entry->waiter.rnr_waiter.store(0, std::memory_order_release);
    qp.ca->al().poster().kick(waiter - 1);
  }
  if (qp.state() == QpState::Error) {
    qp.flushed = false;
    qp.run();
    qp.ca->al().arm_timer();
  }
  return status;
}

Status post_recv(Srq& srq, std::uint64_t wr_id, std::span<const hca::Sge> sge) {
  if (!srq.exists()) return Status::InvalidParameter;
  const Status status = srq.receives->post(wr_id, sge);
  if (status != Status::Ok) return status;
  if (srq.entry->event.rnr_waiter.load(std::memory_order_relaxed) != 0) {
    const std::uint32_t waiter = srq.entry->event.rnr_waiter.exchange(0, std::memory_order_acq_rel);
    if (waiter != 0) srq.ca->al().poster().kick(waiter - 1);
  }
  return status;
}

namespace {
// The low byte of a window's key is its owner's [IBA1 10.6.7.2.1].
std::uint32_t next_key(std::uint32_t key) {
  return (key & ~0xffu) | ((key + 1) & 0xff);
}
}  // namespace

Status bind(Qp& qp, Window& window, const Bind& to) {
  if (!window.exists() || (to.region == nullptr && to.length != 0)) return Status::InvalidParameter;
  hca::SendWqe wqe;
  wqe.wr_id = to.wr_id;
  wqe.opcode = verbs::WrOpcode::BindMw;
  wqe.flags = verbs::send_flag::kSignaled;
  wqe.window = window.index();
  wqe.bind_region = to.region != nullptr ? to.region->index() : hca::kNone;
  wqe.bind_address = to.address;
  wqe.bind_length = to.length;
  wqe.bind_access = to.access;
  wqe.bind_rkey = next_key(window.rkey);
  const Status status = post_send(qp, wqe);
  if (status == Status::Ok) window.rkey = wqe.bind_rkey;
  return status;
}

namespace {

template <class Ring>
bool finish(Al& al, Ring& ring, std::uint32_t pd, const hca::Cqe& cqe, Completion& out) {
  return hca::finish(al.plane(), ring, control::index_of(pd), cqe, out.status, out.wr_id);
}

// False: of a queue pair that is gone, or garbage. Every field is read once.
bool translate(Al& al, const hca::Cqe& cqe, Completion& out) {
  hca::read_completion(cqe, out);
  if (hca::CqConsumer::is_void(out.qpn)) return false;
  // A shared queue gets messages through queue pairs of others too (XRC).
  const auto found = al.qps().find(out.qpn);
  Qp* qp = found != al.qps().end() ? found->second : nullptr;
  if ((cqe.bits & hca::cqe_bit::kReceive) == 0) {
    if (qp == nullptr || !qp->requester) return false;
    return qp->requester->polled(cqe.wqe, out.wr_id);
  }
  const std::uint32_t srq_index = cqe.srq;
  if (srq_index == hca::kNone) {
    return qp != nullptr && qp->receives && finish(al, *qp->receives, qp->in.pd, cqe, out);
  }
  const auto srq = al.srqs().find(srq_index);
  return srq != al.srqs().end() && srq->second->receives &&
         finish(al, *srq->second->receives, srq->second->in.pd, cqe, out);
}

}  // namespace

// Those of before a reset or the end must not pass for those of what comes after it.
void Qp::forget_completions() {
  Al& al = ca->al();
  for (const std::uint32_t named : {in.send_cq, in.recv_cq}) {
    const auto cq = al.cqs().find(control::index_of(named));
    if (cq == al.cqs().end()) continue;
    cq->second->consumer.discard(made.qpn, [&al](const hca::Cqe& cqe) {
      Completion ignored;
      (void)translate(al, cqe, ignored);
    });
  }
}

std::size_t poll(Cq& cq, std::span<Completion> out) {
  std::size_t polled = 0;
  while (cq.exists() && polled < out.size()) {
    const hca::Cqe& cqe = cq.consumer.head();
    if (!cq.consumer.arrived(cqe)) break;
    if (translate(cq.ca->al(), cqe, out[polled])) ++polled;
    cq.consumer.advance();
  }
  if (cq.exists() && cq.consumer.is_armed()) cq.consumer.fire_for_the_rest(cq.ca->al().poster());
  return polled;
}

void arm(Cq& cq, bool solicited_only) {
  if (cq.exists()) cq.consumer.arm(cq.ca->al().poster(), solicited_only);
}

}  // namespace ib::al
