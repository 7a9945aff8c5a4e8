// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/send_completions.h"

#include "hca/queues/broken_queue_pair.h"

namespace ib::hca {

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
    case WrOpcode::Flush: return WcOpcode::Flush;
  }
  return WcOpcode::Send;
}

}  // namespace

void SendCompletions::write(const SendWqe& wqe, std::uint64_t position, WcStatus status,
                            Cause cause, std::uint32_t bytes) {
  const bool is_unsignaled = !signal_all_ && (wqe.flags & verbs::send_flag::kSignaled) == 0;
  if (status == WcStatus::Success && is_unsignaled) return;
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

void SendCompletions::refused() {
  cq_.report_error(plane_.host());  // softibd breaks its users
  break_queue_pair(plane_, own_, Cause::CqOverflow, verbs::EventType::QpFatal);
}

std::uint64_t SendCompletions::now() const {
  return static_cast<std::uint64_t>(plane_.host().now().time_since_epoch().count());
}

void SendCompletions::refresh() {
  are_plain_ = !cq_.has_channel() && !cq_.has_timestamps();
  Cqe sent;
  sent.qpn = own_.id.qpn.load(std::memory_order_relaxed);
  sent_ = CompletionHead(sent);
}

void SendCompletions::finish_fast(std::uint32_t flags, std::uint64_t position, std::uint32_t bytes,
                                  WcOpcode opcode) noexcept {
  if (!signal_all_ && (flags & verbs::send_flag::kSignaled) == 0) return;
  const bool timed = cq_.has_timestamps();
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
