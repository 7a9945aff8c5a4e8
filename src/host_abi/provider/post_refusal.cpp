// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/post_refusal.h"

#include "verbs/post_refusal.h"
#include "verbs/report_count.h"

#include <cerrno>
#include <utility>

namespace ib::host_abi {

namespace {

using verbs::control::Cause;
using verbs::control::PostRefusal;
using verbs::control::TraceErrorIn;

std::uint64_t as_number(int count) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(count));
}

// `owner`: a Qp or an Srq.
template <class Owner>
void tell(Owner& owner, PostRefusal why, TraceErrorIn error, std::uint32_t flags = 0) {
  if (inherited(owner)) return;  // in a forked child the connection to softibd is the parent's
  const auto kind = static_cast<std::uint32_t>(why);
  auto& count = owner.refusals[kind - verbs::control::kFirstPostRefusal];
  const std::uint32_t before = count.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t times = verbs::report_count(before + 1);
  if (times == 0) return;
  verbs::set_times(error, times);
  const int saved = errno;
  error.qp_index = owner.engine->index();
  error.cause = static_cast<Cause>(kind | flags);
  owner.engine->tell(error);
  errno = saved;
}

// A send, as both interfaces to post pass it.
struct Asked {
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  std::uint64_t wr_id = 0;
  int sges = 0;
  std::uint64_t bytes = 0;
  bool is_inline = false;
  bool has_address = false;
};

bool is_of_type(verbs::QpType type, verbs::WrOpcode opcode) {
  using enum verbs::WrOpcode;
  const bool send = opcode == Send || opcode == SendWithImm;
  if (type == verbs::QpType::Ud) return send;
  const bool answered = opcode == RdmaRead || opcode == AtomicCmpSwap || opcode == AtomicFetchAdd ||
                        opcode == AtomicWrite || opcode == Flush;
  return type != verbs::QpType::Uc || !answered;
}

void tell_send(Qp& qp, const Asked& asked, Status status, std::uint32_t flags = 0) {
  const user::QueuePair& engine = *qp.engine;
  const auto& caps = engine.caps();
  TraceErrorIn error;
  error.opcode = asked.opcode;
  error.wr_id = asked.wr_id;
  error.key = static_cast<std::uint32_t>(engine.type());
  PostRefusal why = PostRefusal::SendOther;
  if (status == Status::InvalidState) {
    why = PostRefusal::SendState;
    error.detail = static_cast<std::uint64_t>(engine.state());
  } else if (status == Status::LimitExceeded) {
    why = PostRefusal::SendQueueFull;
    error.detail = caps.max_send_wr;
  } else if (asked.sges < 0 ||
             (!asked.is_inline && std::cmp_greater(asked.sges, caps.max_send_sge))) {
    why = PostRefusal::SendSges;
    error.detail = caps.max_send_sge;
    error.length = as_number(asked.sges);
  } else if (asked.is_inline && asked.bytes > caps.max_inline) {
    why = PostRefusal::SendInline;
    error.detail = caps.max_inline;
    error.length = asked.bytes;
  } else if (!is_of_type(engine.type(), asked.opcode)) {
    why = PostRefusal::SendOpcode;
  } else if (engine.type() == verbs::QpType::Ud && !asked.has_address) {
    why = PostRefusal::SendNoAddress;
  } else if (asked.is_inline && !verbs::may_be_inline(asked.opcode)) {
    why = PostRefusal::SendNoInline;
  }
  tell(qp, why, error, flags);
}

}  // namespace

void tell_refusal(Qp& qp, const ibv_send_wr& wr, Status status) {
  Asked asked;
  asked.opcode = static_cast<verbs::WrOpcode>(wr.opcode);
  asked.wr_id = wr.wr_id;
  asked.sges = wr.num_sge;
  for (int i = 0; i < wr.num_sge && wr.sg_list != nullptr; ++i) asked.bytes += wr.sg_list[i].length;
  asked.is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  asked.has_address = qp.qp.qp_type == IBV_QPT_UD && wr.wr.ud.ah != nullptr;
  tell_send(qp, asked, status);
}

void tell_refusal(Qp& qp, const hca::SendWqe& wqe, Status status) {
  Asked asked;
  asked.opcode = wqe.opcode;
  asked.wr_id = wqe.wr_id;
  asked.sges = static_cast<int>(wqe.num_sge);
  asked.bytes = hca::asked_for(wqe);
  asked.is_inline = wqe.inline_data;
  asked.has_address = wqe.av.port != 0;
  tell_send(qp, asked, status, verbs::control::kRefusedInBatch);
}

void tell_batch_refusal(Qp& qp, const TraceErrorIn& refusal) {
  if (refusal.cause == Cause::None) return;
  tell(qp, static_cast<PostRefusal>(refusal.cause), refusal, verbs::control::kRefusedInBatch);
}

void tell_no_room(Qp& qp, std::size_t requests) {
  TraceErrorIn error;
  error.length = requests;
  error.address = qp.engine->queues().send_room();
  error.detail = qp.engine->caps().max_send_wr;
  tell(qp, PostRefusal::BatchNoRoom, error, verbs::control::kRefusedInBatch);
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
    error.length = as_number(wr.num_sge);
  }
  tell(qp, why, error);
}

void tell_refusal(Srq& srq, const ibv_recv_wr& wr, Status status) {
  const bool full = status == Status::LimitExceeded;
  TraceErrorIn error;
  error.wr_id = wr.wr_id;
  error.detail = full ? srq.engine->max_wr() : srq.engine->max_sge();
  error.length = as_number(wr.num_sge);
  tell(srq, full ? PostRefusal::SrqQueueFull : PostRefusal::SrqSges, error);
}

}  // namespace ib::host_abi
