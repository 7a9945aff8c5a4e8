// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/send_queue.h"

#include <algorithm>
#include <bit>

namespace ib::hca {

using verbs::QpState;
using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

WcOpcode completion_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm: return WcOpcode::RdmaWrite;
    case WrOpcode::Send:
    case WrOpcode::SendWithImm:
    case WrOpcode::SendWithInv: return WcOpcode::Send;
    case WrOpcode::RdmaRead: return WcOpcode::RdmaRead;
    case WrOpcode::AtomicCmpSwap: return WcOpcode::CompSwap;
    case WrOpcode::AtomicFetchAdd: return WcOpcode::FetchAdd;
    case WrOpcode::LocalInv: return WcOpcode::LocalInv;
    case WrOpcode::BindMw: return WcOpcode::BindMw;
    case WrOpcode::AtomicWrite: return WcOpcode::AtomicWrite;
  }
  return WcOpcode::Send;
}

// Which operations a transport has [IBA1 table 43, o10-2].
bool allowed(QpType type, WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::Send:
    case WrOpcode::SendWithImm: return true;
    case WrOpcode::RdmaWrite:
    case WrOpcode::RdmaWriteWithImm:
    case WrOpcode::SendWithInv:
    case WrOpcode::LocalInv:
    case WrOpcode::BindMw: return !verbs::is_datagram(type);
    case WrOpcode::RdmaRead:
    case WrOpcode::AtomicCmpSwap:
    case WrOpcode::AtomicFetchAdd:
    case WrOpcode::AtomicWrite: return type == QpType::Rc || type == QpType::XrcSend;
  }
  return false;
}

}  // namespace

SendQueue::SendQueue(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own)
    : plane_(plane),
      own_(own),
      config_(config),
      cq_(plane.arena(), config.send_cq),
      mask_(std::bit_ceil(std::max(config.max_wr, 1u)) - 1),
      wr_ids_(mask_ + std::size_t{1}),
      stored_(config, mask_) {}

Status SendQueue::check(const SendWqe& wqe) const {
  if (!allowed(config_.type, wqe.opcode)) return Status::InvalidParameter;
  if (wqe.inline_data) {
    if (!verbs::may_be_inline(wqe.opcode)) return Status::InvalidParameter;
    if (asked_for(wqe) > config_.max_inline || wqe.num_sge > kMaxSge)
      return Status::InvalidParameter;
  } else if (wqe.num_sge > config_.max_sge) {
    return Status::InvalidParameter;
  }
  return is_full() ? Status::LimitExceeded : Status::Ok;
}

void SendQueue::reset() {
  waiting_ = 0;
  freed_.store(posted_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void SendQueue::complete(const SendWqe& wqe, std::uint64_t position, WcStatus status, Cause cause,
                         std::uint32_t bytes) {
  if (status == WcStatus::Success) {
    count(bytes);
    if (!config_.signal_all && (wqe.flags & verbs::send_flag::kSignaled) == 0) return;
  }
  if (!cq_.valid()) return;
  Cqe cqe;
  cqe.qpn = own_.id.qpn.load(std::memory_order_relaxed);
  cqe.wqe = static_cast<std::uint32_t>(position);
  cqe.byte_len = bytes;
  cqe.status = static_cast<std::uint32_t>(status);
  cqe.opcode = static_cast<std::uint32_t>(completion_opcode(wqe.opcode));
  cqe.vendor_err = static_cast<std::uint32_t>(cause);
  if (cq_.has_timestamps()) cqe.timestamp = now();
  const Push pushed = cq_.push(plane_.arena(), plane_.host(), plane_.slot(), cqe, nullptr);
  if (pushed == Push::Done) {
    cq_.fire(plane_.host(), status != WcStatus::Success);
  } else {
    refused();
  }
}

void SendQueue::refused() {
  const CqEntry& cq = cq_.entry();
  plane_.host().raise({verbs::control::EventObject::Cq, cq_.index(),
                       cq.id.generation.load(std::memory_order_relaxed), verbs::EventType::CqErr});
  own_.id.state.store(QpState::Error, std::memory_order_release);
}

std::uint64_t SendQueue::now() const {
  return static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
}

// A message that waited is executed by another thread than its sender's, and the peer may answer
// before that thread goes on. The sender must not see the answer before its own completion, which
// an unreliable transport gives as soon as the message has left.
void SendQueue::complete_before_delivery(const SendWqe& wqe, std::uint32_t bytes) {
  if (!verbs::is_unreliable(config_.type) || !waiting() || completed_) return;
  complete(wqe, head(), WcStatus::Success, Cause::None, bytes);
  completed_ = true;
}

void SendQueue::refresh() {
  completes_plain_ = !cq_.has_channel() && !cq_.has_timestamps();
  Cqe sent;
  sent.qpn = own_.id.qpn.load(std::memory_order_relaxed);
  sent_ = CompletionHead(sent);
}

void SendQueue::finish_fast(std::uint32_t flags, std::uint32_t bytes, WcOpcode opcode) noexcept {
  if (!config_.signal_all && (flags & verbs::send_flag::kSignaled) == 0) return;
  const bool timed = cq_.has_timestamps();
  const std::uint64_t position = posted_.load(std::memory_order_relaxed) - 1;
  const Push pushed =
      cq_.push_with(plane_.arena(), plane_.host(), plane_.slot(), nullptr, [&](Cqe& slot) {
        write_sent(slot, position, bytes, opcode);
        if (timed) slot.timestamp = now();
      });
  if (pushed == Push::Done) {
    cq_.fire(plane_.host(), false);
  } else {
    refused();
  }
}

}  // namespace ib::hca
