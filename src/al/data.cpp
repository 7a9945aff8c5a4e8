// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting, polling, and what becomes of work requests that wait or are flushed.
#include "al/poster.h"
#include "al/verbs.h"
#include "hca/layout/large_datagrams.h"
#include "hca/poster/own_queue_pair_flow.h"

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
  return own.open(ca->al().plane(), index(), made);
}

void Srq::end() {
  handle = control::kNoIndex;
  own.close();
}

namespace {

// The differences from a program's queue pair: one thread, which waits for nothing (hca/queues/
// own_queue_pair_flow.h).
struct Owner {
  Qp& qp;

  hca::NoLock& send_lock() { return lock; }
  hca::NoLock& recv_lock() { return lock; }
  hca::NoLock& flush_lock() { return lock; }
  void requests_wait() const { qp.ca->al().objects().arm_timer(); }
  void forget_waiting() const {}
  void forget_completions() const { qp.forget_completions(); }
  void wait_a_little(hca::Quiescence&) const {}
  void flush_later() const { qp.ca->al().objects().arm_timer(); }

  hca::NoLock lock;
};

}  // namespace

bool Qp::begin() {
  return own.open(ca->al().plane(), index(), in, made);
}

void Qp::end() {
  handle = control::kNoIndex;
  own.close();
}

void Qp::remember() {
  Owner owner{*this, {}};
  own.modified(owner, change.mask, change.attr, changed.state);
  run();
  ca->al().objects().arm_timer();
}

// Continues waiting requests, and detects that the queue pair was broken, by any process.
void Qp::run() {
  Owner owner{*this, {}};
  if (own.is_waiting()) (void)own.run(owner);
  own.flush(owner);
}

Status post_send(Qp& qp, const hca::SendWqe& wqe) {
  if (!qp.exists() || qp.own.sends() == nullptr) return Status::InvalidParameter;
  Owner owner{qp, {}};
  return qp.own.post(owner, wqe);
}

bool may_send_large(const Qp& qp, const verbs::AddressVector& av, std::uint32_t qpn) {
  if (!qp.exists() || (qp.in.flags & control::qp_flag::kTakesLarge) == 0) return false;
  return hca::takes_large(qp.ca->al().system().arena, qp.own.entry().id.port, av, qpn);
}

Status post_recv(Qp& qp, std::uint64_t wr_id, std::span<const hca::Sge> sge) {
  if (!qp.exists() || qp.own.receives() == nullptr) return Status::InvalidParameter;
  if (qp.state() == QpState::Reset) return Status::InvalidState;
  const Status status = qp.own.receives()->post(wr_id, sge);
  if (status != Status::Ok || !qp.own.is_awaited()) return status;
  Owner owner{qp, {}};
  qp.own.serve_awaited(owner);
  return status;
}

Status post_recv(Srq& srq, std::uint64_t wr_id, std::span<const hca::Sge> sge) {
  if (!srq.exists()) return Status::InvalidParameter;
  const Status status = srq.own.receives()->post(wr_id, sge);
  if (status == Status::Ok) srq.own.serve_awaited();
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

// Returns false if it is of a queue pair that is gone, or garbage. Every field is read once.
bool translate(Al& al, const hca::Cqe& cqe, Completion& out) {
  hca::read_completion(cqe, out);
  if (hca::CqConsumer::is_void(out.qpn)) return false;
  // A shared queue gets messages through queue pairs of others too (XRC).
  const std::uint32_t shared = cqe.srq;
  const bool received = (cqe.bits & hca::cqe_bit::kReceive) != 0;
  if (received && shared != hca::kNone) {
    const auto srq = al.objects().srqs().find(shared);
    return srq != al.objects().srqs().end() && srq->second->own.receives() != nullptr &&
           hca::finish(al.plane(), *srq->second->own.receives(),
                       control::index_of(srq->second->in.pd), cqe, out.status, out.wr_id);
  }
  const auto found = al.objects().qps().find(out.qpn);
  if (found == al.objects().qps().end()) return false;
  const hca::OwnQueuePair& own = found->second->own;
  if (!received) return own.sends() != nullptr && own.sends()->polled(cqe.wqe, out.wr_id);
  return own.receives() != nullptr &&
         hca::finish(al.plane(), *own.receives(), own.pd(), cqe, out.status, out.wr_id);
}

}  // namespace

// Those of before a reset or the end must not pass for those of what comes after it.
void Qp::forget_completions() {
  Al& al = ca->al();
  for (const std::uint32_t named : {in.send_cq, in.recv_cq}) {
    const auto cq = al.objects().cqs().find(control::index_of(named));
    if (cq == al.objects().cqs().end()) continue;
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
