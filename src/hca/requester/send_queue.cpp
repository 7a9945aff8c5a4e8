// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/send_queue.h"

#include "hca/requester/message_count.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

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
    case WrOpcode::AtomicWrite:
    case WrOpcode::Flush: return type == QpType::Rc || type == QpType::XrcSend;
  }
  return false;
}

}  // namespace

SendQueue::SendQueue(MemoryPlane& plane, const RequesterConfig& config, QpEntry& own)
    : arena_(plane.arena()),
      own_(own),
      config_(config),
      completions_(plane, config, own),
      posted_(config.max_wr),
      stored_(config, posted_.mask()) {}

Status SendQueue::check(const SendWqe& wqe) const {
  if (!allowed(config_.type, wqe.opcode)) return Status::InvalidParameter;
  if (wqe.opcode == WrOpcode::Flush && !verbs::flush::is_valid(wqe.imm)) {
    return Status::InvalidParameter;
  }
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
  posted_.reset();
}

void SendQueue::complete(const SendWqe& wqe, std::uint64_t position, WcStatus status, Cause cause,
                         std::uint32_t bytes) {
  if (status == WcStatus::Success) {
    if (verbs::is_datagram(config_.type)) {
      count_datagram(arena_, own_, wqe, bytes);
    } else {
      count_request(own_, wqe, bytes);
    }
  }
  completions_.write(wqe, position, status, cause, bytes);
}

// A message that waited is executed by another thread than its sender's, and the peer may answer
// before that thread goes on. The sender must not see the answer before its own completion, which
// an unreliable transport gives as soon as the message has left.
void SendQueue::complete_before_delivery(const SendWqe& wqe, std::uint32_t bytes) {
  if (!verbs::is_unreliable(config_.type) || !waiting() || completed_) return;
  complete(wqe, head(), WcStatus::Success, Cause::None, bytes);
  completed_ = true;
}

}  // namespace ib::hca
