// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rings of an end in device memory, which any process may have written to: what leads to memory is
// checked when a view is opened, and indexes when they are used.
#include "streams/queue_view.h"

#include "hca/memory/copy.h"

#include <bit>
#include <cstring>

namespace ib::streams {

Result<Rings> Rings::find(const hca::Arena& arena, const SharedEnd& end) {
  Rings rings;
  rings.qp_ = arena.qp(end.qp);
  rings.cq_ = arena.cq(end.cq);
  const std::uint32_t slots = end.rq_slots;
  const std::uint32_t completions = end.cq_slots;
  rings.stride_ = end.rq_stride;
  const bool makes_sense =
      std::has_single_bit(slots) && slots >= kBuffers && slots <= 1024 &&
      std::has_single_bit(completions) && completions >= 2 && completions <= 1024 &&
      rings.stride_ >= hca::receive_stride(1) &&
      rings.stride_ <= hca::receive_stride(hca::kMaxSge) && rings.stride_ % sizeof(hca::Sge) == 0 &&
      end.cq_ring % alignof(hca::Cqe) == 0 && end.rq_ring % alignof(hca::ReceiveWqe) == 0;
  if (!makes_sense || rings.qp_ == nullptr || rings.cq_ == nullptr) return Status::InvalidParameter;
  rings.receives_ = arena.heap(end.rq_ring, std::uint64_t{slots} * rings.stride_);
  rings.completions_ = reinterpret_cast<const hca::Cqe*>(
      arena.heap(end.cq_ring, std::uint64_t{completions} * sizeof(hca::Cqe)));
  rings.buffers_ = arena.heap(end.buffers, std::uint64_t{kBuffers} * kBufferBytes);
  if (rings.receives_ == nullptr || rings.completions_ == nullptr || rings.buffers_ == nullptr) {
    return Status::InvalidParameter;
  }
  rings.receive_order_ = hca::RingOrder(slots);
  rings.completion_order_ = hca::RingOrder(completions);
  rings.log_completions_ = static_cast<std::uint32_t>(std::countr_zero(completions));
  rings.buffers_address_ = end.buffers_address;
  rings.lkey_ = end.lkey;
  return rings;
}

void Rings::post_receive(std::uint32_t index) {
  const std::uint64_t position = qp_->owner.rq_tail.load(std::memory_order_relaxed);
  std::byte* slot = receives_ + std::uint64_t{receive_order_.slot(position)} * stride_;
  const hca::ReceiveWqe wqe{index, 1, 0};
  const hca::Sge sge{buffers_address_ + std::uint64_t{index} * kBufferBytes, kBufferBytes, lkey_};
  std::memcpy(slot, &wqe, sizeof wqe);
  std::memcpy(slot + sizeof wqe, &sge, sizeof sge);
  // Release: the slot, for posters.
  qp_->owner.rq_tail.store(position + 1, std::memory_order_release);
}

const hca::Cqe& Rings::head(std::uint64_t position) const {
  return completions_[completion_order_.slot(position)];
}

bool Rings::has_arrival() const {
  const std::uint64_t position = cq_->consumer.consumer.load(std::memory_order_relaxed);
  // Acquire: what the completion says, and the bytes of the message, were written before.
  return head(position).seq.load(std::memory_order_acquire) ==
         static_cast<std::uint32_t>(position >> log_completions_) + 1;
}

Rings::Arrival Rings::take() {
  const std::uint64_t position = cq_->consumer.consumer.load(std::memory_order_relaxed);
  const hca::Cqe& slot = head(position);
  Arrival arrival;
  arrival.buffer = slot.wqe;
  arrival.bytes = slot.byte_len;
  arrival.is_good = slot.status == static_cast<std::uint32_t>(verbs::WcStatus::Success) &&
                    arrival.buffer < kBuffers && arrival.bytes <= kBufferBytes;
  // Release: the slot was read. A poster may write it from now on.
  cq_->consumer.consumer.store(position + 1, std::memory_order_release);
  return arrival;
}

bool Rings::is_connected() const {
  return qp_->id.state.load(std::memory_order_acquire) == verbs::QpState::Rts;
}

Result<std::unique_ptr<QueueView>> QueueView::open(hca::MemoryPlane& plane, const SharedEnd& end) {
  const auto rings = Rings::find(plane.arena(), end);
  if (!rings) return rings.error();
  hca::RequesterConfig config;
  config.qp = end.qp;
  config.pd = end.pd;
  config.max_wr = 1;
  config.max_sge = 1;
  config.max_inline = kBufferBytes;
  return std::unique_ptr<QueueView>(new QueueView(plane, *rings, config));
}

hca::Requester::Tried QueueView::send(std::span<const hca::Sge> pieces) {
  hca::SendWqe wqe;
  wqe.opcode = verbs::WrOpcode::Send;
  wqe.sge = pieces.data();
  wqe.num_sge = static_cast<std::uint32_t>(pieces.size());
  wqe.inline_data = true;  // plain pointers
  return requester_.try_now(wqe);
}

}  // namespace ib::streams
