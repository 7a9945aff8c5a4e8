// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of OwnQueuePair that do not depend on its owner: making it from softibd's reply, and
// its reports to others.
#include "hca/poster/own_queue_pair.h"

#include "hca/queues/receive_flush.h"

namespace ib::hca {

namespace control = verbs::control;
using verbs::QpType;

namespace {

std::uint32_t index_or_none(std::uint32_t handle) {
  return handle != control::kNoIndex ? control::index_of(handle) : kNone;
}

RequesterConfig config_of(std::uint32_t index, const control::CreateQpIn& in,
                          const control::QpOut& made) {
  RequesterConfig config;
  config.qp = index;
  config.type = in.type;
  config.pd = index_or_none(in.pd);
  config.send_cq = index_or_none(in.send_cq);
  config.max_wr = made.caps.max_send_wr;
  config.max_sge = made.caps.max_send_sge;
  config.max_inline = made.caps.max_inline;
  config.block_loopback = (in.flags & control::qp_flag::kBlockLoopback) != 0;
  config.takes_large = (in.flags & control::qp_flag::kTakesLarge) != 0;
  return config;
}

}  // namespace

bool OwnQueuePair::open(MemoryPlane& plane, std::uint32_t index, const control::CreateQpIn& in,
                        const control::QpOut& made, bool signal_all) {
  close();
  QpEntry* entry = plane.arena().qp(index);
  if (entry == nullptr || qp_index(made.qpn) != index) return false;
  if (made.rq_ring != 0) {
    receives_ = OwnReceives::create(plane.arena(),
                                    {made.rq_ring, made.rq_slots, made.rq_stride,
                                     made.caps.max_recv_wr, made.caps.max_recv_sge},
                                    entry->owner.rq_tail);
    if (!receives_) return false;
  }
  plane_ = &plane;
  entry_ = entry;
  index_ = index;
  executing_ = executing::queue_pair(index);
  qpn_ = made.qpn;
  pd_ = index_or_none(in.pd);
  srq_ = index_or_none(in.srq);
  if (in.type == QpType::XrcRecv || in.send_cq == control::kNoIndex) return true;
  RequesterConfig config = config_of(index, in, made);
  config.signal_all = signal_all;
  sends_ = std::make_unique<Requester>(plane, config);
  if (in.type == QpType::Rc || in.type == QpType::Uc) fast_path_ = &sends_->fast_path();
  return true;
}

void OwnQueuePair::close() {
  *this = OwnQueuePair();
}

// A requester that found no receive and waits for the one that was posted.
void OwnQueuePair::wake_waiter() {
  const std::uint32_t waiter = entry_->waiter.rnr_waiter.exchange(0, std::memory_order_acq_rel);
  if (waiter != 0) plane_->host().kick(waiter - 1);
}

void OwnQueuePair::raise_last_wqe_reached() {
  plane_->host().raise({control::EventObject::Qp, index_, entry_->id.generation,
                        verbs::EventType::QpLastWqeReached});
}

// Nobody else touches the responder line any more. Under the flush and receive locks.
void OwnQueuePair::write_flushes() {
  const OpScope scope(*plane_, executing::kOwn);
  hca::flush_receives(*plane_, *entry_, qpn_, receives_.get(), srq_);
}

}  // namespace ib::hca
