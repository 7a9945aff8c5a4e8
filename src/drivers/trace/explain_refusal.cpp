// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests that were not taken when they were posted: what the value was, what would be right.
#include "drivers/trace/code_name.h"
#include "drivers/trace/explain.h"
#include "drivers/trace/words.h"
#include "verbs/post_refusal.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

using verbs::control::PostRefusal;
using verbs::control::TraceErrorIn;

// As the program passed it: it may have been negative.
std::int64_t number_of_sges(const TraceErrorIn& e) {
  return static_cast<std::int64_t>(e.length);
}

std::string why_not_sent(const TraceErrorIn& e, PostRefusal why) {
  using enum PostRefusal;
  if (why == SendState) {
    return fmt::format("the queue pair is in {}; ibv_modify_qp it to INIT, RTR and RTS first",
                       qp_state_name(static_cast<verbs::QpState>(e.detail)));
  }
  if (why == SendSges) {
    return fmt::format(
        "it has {} scatter/gather elements, the queue pair takes {}; create it with a larger "
        "max_send_sge",
        number_of_sges(e), e.detail);
  }
  if (why == SendInline) {
    return fmt::format(
        "it has {} bytes inline, the queue pair takes {}; create it with a larger max_inline_data, "
        "or leave out IBV_SEND_INLINE",
        e.length, e.detail);
  }
  if (why == SendQueueFull) {
    return fmt::format(
        "all {} places of the send queue are taken; poll the completion queue (one request in that "
        "many has to be signaled), or create it with a larger max_send_wr",
        e.detail);
  }
  if (why == SendOpcode) {
    return fmt::format("queue pairs of type {} do not have this operation",
                       qp_type_name(static_cast<verbs::QpType>(e.key)));
  }
  if (why == SendNoAddress) return "a datagram needs an address handle in wr.ud.ah (ibv_create_ah)";
  if (why == SendNoInline) return "this operation takes no inline data; use ibv_wr_set_sge";
  return "its operation, flags or operands do not fit this queue pair";
}

std::string why_no_batch(const TraceErrorIn& e, PostRefusal why) {
  using enum PostRefusal;
  if (why == BatchTooLong) {
    return fmt::format(
        "the batch has more than {} requests, which is all that the send queue takes; complete it "
        "earlier, or create the queue pair with a larger max_send_wr",
        e.detail);
  }
  if (why == BatchNoRoom) {
    return fmt::format(
        "the batch has {} requests, {} of {} places of the send queue are free; poll the "
        "completion queue (one request in that many has to be signaled), or create the queue pair "
        "with a larger max_send_wr",
        e.length, e.address, e.detail);
  }
  return "a setter (ibv_wr_set_sge, ibv_wr_set_inline_data ...) was called before a request was "
         "begun (ibv_wr_send ...)";
}

std::string why_not_received(const TraceErrorIn& e, PostRefusal why) {
  using enum PostRefusal;
  if (why == RecvState) return "the queue pair is in RESET; ibv_modify_qp it to INIT first";
  if (why == RecvShared) {
    return "the queue pair has a shared receive queue; post to that, with ibv_post_srq_recv";
  }
  const bool shared = why == SrqSges || why == SrqQueueFull;
  if (why == RecvSges || why == SrqSges) {
    return fmt::format(
        "it has {} scatter/gather elements, the {} takes {}; create it with a larger {}",
        number_of_sges(e), shared ? "shared receive queue" : "queue pair", e.detail,
        shared ? "attr.max_sge" : "max_recv_sge");
  }
  return fmt::format(
      "all {} places of the {}receive queue are taken; create it with a larger {}, or post again "
      "as receives complete",
      e.detail, shared ? "shared " : "", shared ? "attr.max_wr" : "max_recv_wr");
}

}  // namespace

std::string explain_refusal(const TraceErrorIn& e) {
  const auto cause = static_cast<std::uint32_t>(e.cause);
  const bool in_batch = (cause & verbs::control::kRefusedInBatch) != 0;
  const auto why = static_cast<PostRefusal>(cause & ~verbs::control::kRefusedInBatch);
  const auto said = [&](const char* call, const std::string& reason) {
    return fmt::format("{} (wr_id {:#x}) was refused: {}", call, e.wr_id, reason);
  };
  const char* const operation = opcode_name(e.opcode);
  using enum PostRefusal;
  switch (why) {
    case SendState:
    case SendSges:
    case SendInline:
    case SendQueueFull:
    case SendOpcode:
    case SendNoAddress:
    case SendNoInline:
    case SendOther:
      return said(
          fmt::format("{}{}", in_batch ? "ibv_wr_complete of " : "ibv_post_send of ", operation)
              .c_str(),
          why_not_sent(e, why));
    case BatchTooLong:
    case BatchNoRoom:
    case BatchOrder: return fmt::format("ibv_wr_complete was refused: {}", why_no_batch(e, why));
    case RecvState:
    case RecvSges:
    case RecvQueueFull:
    case RecvShared: return said("ibv_post_recv", why_not_received(e, why));
    case SrqSges:
    case SrqQueueFull: return said("ibv_post_srq_recv", why_not_received(e, why));
  }
  return {};
}

}  // namespace ib::drivers
