// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Refusals of ibv_post_*() and ibv_wr_complete() (verbs/post_refusal.h) in words.
#include "softib/pages/explanation.h"

namespace ib::softib {
namespace {

using verbs::control::PostRefusal;

struct Card {
  PostRefusal why;
  const char* call;
  Explanation text;
};

constexpr const char* kSend = "ibv_post_send";
constexpr const char* kRecv = "ibv_post_recv";
constexpr const char* kSrq = "ibv_post_srq_recv";
constexpr const char* kBatch = "ibv_wr_complete";

constexpr Card kCards[] = {
    {PostRefusal::SendState,
     kSend,
     {"SendState", "Sends are taken in RTS only (and in SQD, SQE and ERR, to be flushed).",
      "ibv_modify_qp the queue pair to INIT, RTR and RTS before you post."}},
    {PostRefusal::SendSges,
     kSend,
     {"SendSges", "The request has more scatter/gather elements than the queue pair takes.",
      "Create the queue pair with a larger cap.max_send_sge."}},
    {PostRefusal::SendInline,
     kSend,
     {"SendInline", "The request has more inline bytes than the queue pair takes.",
      "Create the queue pair with a larger cap.max_inline_data, or leave out IBV_SEND_INLINE."}},
    {PostRefusal::SendQueueFull,
     kSend,
     {"SendQueueFull", "All places of the send queue are taken (ENOMEM).",
      "A place is free when its completion, or a later one of the queue, has been polled: signal "
      "one "
      "request in max_send_wr at least, and poll; or create the queue pair with more places."}},
    {PostRefusal::SendOpcode,
     kSend,
     {"SendOpcode", "Queue pairs of this type do not have this operation.",
      "UD: SEND only. UC: no reads and no atomics. RC and XRC have all."}},
    {PostRefusal::SendNoAddress,
     kSend,
     {"SendNoAddress", "A datagram needs an address handle.",
      "ibv_create_ah, and the result in wr.ud.ah or ibv_wr_set_ud_addr."}},
    {PostRefusal::SendOther,
     kSend,
     {"SendOther", "Operation, flags or operands do not fit the queue pair.",
      "Atomic writes have 8 bytes, binding needs a window; IBV_SEND_IP_CSUM and TSO are not "
      "there."}},
    {PostRefusal::RecvState,
     kRecv,
     {"RecvState", "In RESET a queue pair takes no receives.", "ibv_modify_qp it to INIT first."}},
    {PostRefusal::RecvSges,
     kRecv,
     {"RecvSges", "The receive has more scatter/gather elements than the queue pair takes.",
      "Create the queue pair with a larger cap.max_recv_sge."}},
    {PostRefusal::RecvQueueFull,
     kRecv,
     {"RecvQueueFull", "All places of the receive queue are taken (ENOMEM).",
      "Post again as receives complete, or create the queue pair with a larger cap.max_recv_wr."}},
    {PostRefusal::RecvShared,
     kRecv,
     {"RecvShared", "The queue pair takes its receives from a shared receive queue.",
      "Post to that, with ibv_post_srq_recv."}},
    {PostRefusal::SrqSges,
     kSrq,
     {"SrqSges",
      "The receive has more scatter/gather elements than the shared receive queue takes.",
      "Create the shared receive queue with a larger attr.max_sge."}},
    {PostRefusal::SrqQueueFull,
     kSrq,
     {"SrqQueueFull", "All places of the shared receive queue are taken (ENOMEM).",
      "Post again as receives complete, or create it with a larger attr.max_wr."}},
    {PostRefusal::BatchTooLong,
     kBatch,
     {"BatchTooLong",
      "Between ibv_wr_start and ibv_wr_complete are more requests than the send queue has places.",
      "Complete earlier, or create the queue pair with a larger cap.max_send_wr."}},
    {PostRefusal::BatchNoRoom,
     kBatch,
     {"BatchNoRoom", "The requests of the batch do not fit into what is free of the send queue.",
      "Poll the completion queue first; a batch is taken as a whole or not at all."}},
    {PostRefusal::BatchOrder,
     kBatch,
     {"BatchOrder", "A setter was called before the request that it is about.",
      "First ibv_wr_send or the like, then ibv_wr_set_sge or the like."}},
    {PostRefusal::SendNoInline,
     kBatch,
     {"SendNoInline", "This operation takes no inline data.", "Use ibv_wr_set_sge."}},
};

}  // namespace

Explanation explain(PostRefusal why) {
  for (const Card& card : kCards) {
    if (card.why == why) return card.text;
  }
  return {};
}

std::vector<PostRefusal> refusals_of(std::string_view call) {
  std::vector<PostRefusal> all;
  for (const Card& card : kCards) {
    if (call.empty() || call == card.call) all.push_back(card.why);
  }
  return all;
}

}  // namespace ib::softib
