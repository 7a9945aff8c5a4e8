// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/queues/receive_flush.h"

#include "hca/queues/cq_producer.h"

namespace ib::hca {

namespace {

struct Flush {
  MemoryPlane& plane;
  CqProducer cq;
  std::uint32_t qpn;
  std::uint32_t cause;

  void end(std::uint32_t id, std::uint32_t srq) {
    Cqe cqe;
    cqe.qpn = qpn;
    cqe.wqe = id;
    cqe.srq = srq;
    cqe.status = static_cast<std::uint32_t>(verbs::WcStatus::WrFlushErr);
    cqe.opcode = static_cast<std::uint32_t>(verbs::WcOpcode::Recv);
    cqe.bits = cqe_bit::kReceive;
    cqe.vendor_err = cause;
    if (cq.push(plane.arena(), plane.host(), plane.slot(), cqe, nullptr) == Push::Done) {
      cq.fire(plane.host(), true);
    } else {
      cq.report_error(plane.host());
    }
  }
};

}  // namespace

void flush_receives(MemoryPlane& plane, QpEntry& entry, std::uint32_t qpn, const OwnReceives* ring,
                    std::uint32_t srq) {
  auto& responder = entry.responder;
  Flush flush{
      plane, CqProducer(plane.arena(), entry.id.recv_cq), qpn,
      static_cast<std::uint32_t>(entry.geometry.error_cause.load(std::memory_order_relaxed))};
  if (!flush.cq.valid()) return;
  const std::uint64_t taken = responder.srq_taken.exchange(0, std::memory_order_acq_rel);
  if (taken != 0 && srq != kNone) flush.end(static_cast<std::uint32_t>(taken - 1), srq);
  responder.cq_intent.store(0, std::memory_order_release);
  if (ring == nullptr) return;
  const std::uint64_t tail = ring->tail();
  std::uint64_t head = responder.rq_head.load(std::memory_order_acquire);
  if (tail - head > ring->max_wr()) head = tail;  // garbage: nothing sensible to flush
  for (; head != tail; ++head) flush.end(static_cast<std::uint32_t>(head), kNone);
  responder.rq_head.store(tail, std::memory_order_release);
}

}  // namespace ib::hca
