// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/post_refusal.h"

#include "verbs/post_refusal.h"

#include <cerrno>
#include <utility>

namespace ib::host_abi {

namespace {

using verbs::control::PostRefusal;
using verbs::control::TraceErrorIn;

std::uint64_t bytes_of(const ibv_sge* list, int count) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < count && list != nullptr; ++i) bytes += list[i].length;
  return bytes;
}

void tell(Qp& qp, PostRefusal why, TraceErrorIn& error) {
  const std::uint32_t bit = 1u << (static_cast<std::uint32_t>(why) & 31);
  // In a forked child the connection to softibd is the parent's.
  if (inherited(qp) || (qp.refusals_told.fetch_or(bit, std::memory_order_relaxed) & bit) != 0)
    return;
  const int saved = errno;
  error.qp_index = qp.engine->index();
  error.cause = static_cast<verbs::control::Cause>(why);
  qp.engine->tell(error);
  errno = saved;
}

}  // namespace

void tell_refusal(Qp& qp, const ibv_send_wr& wr, Status status) {
  const user::QueuePair& engine = *qp.engine;
  const auto& caps = engine.caps();
  TraceErrorIn error;
  error.opcode = static_cast<verbs::WrOpcode>(wr.opcode);
  error.wr_id = wr.wr_id;
  error.key = static_cast<std::uint32_t>(engine.type());
  const std::uint64_t bytes = bytes_of(wr.sg_list, wr.num_sge);
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  PostRefusal why = PostRefusal::SendOther;
  if (status == Status::InvalidState) {
    why = PostRefusal::SendState;
    error.detail = static_cast<std::uint64_t>(engine.state());
  } else if (status == Status::LimitExceeded) {
    why = PostRefusal::SendQueueFull;
    error.detail = caps.max_send_wr;
  } else if (wr.num_sge < 0 || (!is_inline && std::cmp_greater(wr.num_sge, caps.max_send_sge))) {
    why = PostRefusal::SendSges;
    error.detail = caps.max_send_sge;
    error.length = static_cast<std::uint64_t>(static_cast<std::int64_t>(wr.num_sge));
  } else if (is_inline && bytes > caps.max_inline) {
    why = PostRefusal::SendInline;
    error.detail = caps.max_inline;
    error.length = bytes;
  } else if (engine.type() == verbs::QpType::Ud) {
    const bool send = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM;
    why = !send                    ? PostRefusal::SendOpcode
          : wr.wr.ud.ah == nullptr ? PostRefusal::SendNoAddress
                                   : PostRefusal::SendOther;
  } else if (engine.type() == verbs::QpType::Uc &&
             (wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
              wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
    why = PostRefusal::SendOpcode;
  }
  tell(qp, why, error);
}

void tell_refusal(Qp& qp, const ibv_recv_wr& wr, Status status) {
  const user::QueuePair& engine = *qp.engine;
  TraceErrorIn error;
  error.wr_id = wr.wr_id;
  PostRefusal why = PostRefusal::RecvSges;
  if (qp.qp.srq != nullptr) {
    why = PostRefusal::RecvShared;
  } else if (status == Status::InvalidState) {
    why = PostRefusal::RecvState;
  } else if (status == Status::LimitExceeded) {
    why = PostRefusal::RecvQueueFull;
    error.detail = engine.caps().max_recv_wr;
  } else {
    error.detail = engine.caps().max_recv_sge;
    error.length = static_cast<std::uint64_t>(static_cast<std::int64_t>(wr.num_sge));
  }
  tell(qp, why, error);
}

}  // namespace ib::host_abi
