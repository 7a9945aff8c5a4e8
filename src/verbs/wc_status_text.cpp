// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion statuses in words [IBA1 11.6.2].
#include "verbs/explanation.h"

#include <array>
#include <cstddef>

namespace ib::verbs {

namespace {

struct Row {
  WcStatus status;
  const char* verbs_name;
  Explanation words;
};
constexpr std::array<Row, kWcStatusCount> kRows{{
    {WcStatus::Success, "IBV_WC_SUCCESS", {"Success", "The request is done.", "Nothing to do."}},
    {WcStatus::LocLenErr,
     "IBV_WC_LOC_LEN_ERR",
     {"LocLenErr",
      "The sizes do not fit on this side: a receive was too small for the message, or a send was "
      "longer than the transport allows (UD: one MTU).",
      "Post receives as large as the largest message, plus 40 bytes for the GRH on UD; compare the "
      "send's length with the port's active MTU (UD) or max_msg_sz."}},
    {WcStatus::LocQpOpErr,
     "IBV_WC_LOC_QP_OP_ERR",
     {"LocQpOpErr",
      "The HCA could not carry out the request because of the queue pair itself, for example an "
      "operation that this transport does not have.",
      "Check opcode against QP type, the number of SGEs against the QP's caps, and reads or "
      "atomics against max_rd_atomic (0 forbids them)."}},
    {WcStatus::LocEecOpErr,
     "IBV_WC_LOC_EEC_OP_ERR",
     {"LocEecOpErr", "An error of an end-to-end context (reliable datagram).",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::LocProtErr,
     "IBV_WC_LOC_PROT_ERR",
     {"LocProtErr",
      "A scatter/gather element of the request names memory that this QP may not use: unknown "
      "lkey, another protection domain, out of the region's range, or no local write access for "
      "data that comes in.",
      "Check the lkey (still registered?), address and length of each SGE, that MR and QP have the "
      "same PD, and IBV_ACCESS_LOCAL_WRITE for receives, reads and atomics."}},
    {WcStatus::WrFlushErr,
     "IBV_WC_WR_FLUSH_ERR",
     {"WrFlushErr",
      "The request was not carried out: its QP was in, or went into, the error state.",
      "This is the consequence, not the cause: look for the *first* completion with another status "
      "on this QP, or a disconnect; normal when a connection is torn down."}},
    {WcStatus::MwBindErr,
     "IBV_WC_MW_BIND_ERR",
     {"MwBindErr", "A memory window could not be bound or invalidated.",
      "The region needs IBV_ACCESS_MW_BIND, the window's range must lie in it, remote write or "
      "atomic of the window needs local write of the region; type 1 and 2 windows bind "
      "differently."}},
    {WcStatus::BadRespErr,
     "IBV_WC_BAD_RESP_ERR",
     {"BadRespErr", "The peer answered with something that makes no sense here.",
      "A connection of two QPs that do not belong together, or a bug; `softib trace`."}},
    {WcStatus::LocAccessErr,
     "IBV_WC_LOC_ACCESS_ERR",
     {"LocAccessErr",
      "A protection error on a local buffer while data of the peer was being placed (RDMA write "
      "with immediate, or a receive).",
      "Check that the region behind the receive is still registered and has "
      "IBV_ACCESS_LOCAL_WRITE."}},
    {WcStatus::RemInvReqErr,
     "IBV_WC_REM_INV_REQ_ERR",
     {"RemInvReqErr",
      "The peer rejected the request as invalid: its receive was too small, the operation is not "
      "enabled on its QP, or an atomic was not aligned to 8 bytes.",
      "Compare message length with the peer's receives; check the peer QP's access flags and the "
      "remote address of atomics."}},
    {WcStatus::RemAccessErr,
     "IBV_WC_REM_ACCESS_ERR",
     {"RemAccessErr",
      "The peer's memory did not allow the access: the rkey is unknown there, belongs to another "
      "protection domain, lacks the right, or address and length leave the region.",
      "Compare rkey, remote address and length with what the peer registered; it needs "
      "IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC, for a flush IBV_ACCESS_FLUSH_GLOBAL, on region "
      "*and* QP."}},
    {WcStatus::RemOpErr,
     "IBV_WC_REM_OP_ERR",
     {"RemOpErr",
      "The peer could not finish its part because of its own error, mostly in the receive it had "
      "posted (bad lkey).",
      "Look at the peer: it has a completion or an asynchronous event with the reason."}},
    {WcStatus::RetryExcErr,
     "IBV_WC_RETRY_EXC_ERR",
     {"RetryExcErr",
      "The peer did not answer: the request was tried retry_cnt times without an acknowledgement. "
      "The peer process ended, its QP is not (or no longer) in RTR or RTS, is connected to another "
      "QP, or a port is down.",
      "`softib trace` says which. Check that both sides exchanged QPN, LID or GID and PSN before "
      "the first send, and that the peer did not destroy its QP too early."}},
    {WcStatus::RnrRetryExcErr,
     "IBV_WC_RNR_RETRY_EXC_ERR",
     {"RnrRetryExcErr", "The peer is alive but had no receive posted, rnr_retry times in a row.",
      "Post receives before the sender starts, post more of them, or set rnr_retry to 7 (wait for "
      "ever) and a larger min_rnr_timer on the receiver."}},
    {WcStatus::LocRddViolErr,
     "IBV_WC_LOC_RDD_VIOL_ERR",
     {"LocRddViolErr", "A violation of a reliable datagram domain.",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::RemInvRdReqErr,
     "IBV_WC_REM_INV_RD_REQ_ERR",
     {"RemInvRdReqErr", "The peer rejected an RD message (reliable datagram).",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::RemAbortErr,
     "IBV_WC_REM_ABORT_ERR",
     {"RemAbortErr", "The peer aborted the operation (reliable datagram).",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::InvEecnErr,
     "IBV_WC_INV_EECN_ERR",
     {"InvEecnErr", "A bad number of an end-to-end context (reliable datagram).",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::InvEecStateErr,
     "IBV_WC_INV_EEC_STATE_ERR",
     {"InvEecStateErr", "A bad state of an end-to-end context (reliable datagram).",
      "softib has no RD transport; you should not see this."}},
    {WcStatus::FatalErr,
     "IBV_WC_FATAL_ERR",
     {"FatalErr", "The HCA failed.", "softibd has probably ended: `softib status`, and its log."}},
    {WcStatus::RespTimeoutErr,
     "IBV_WC_RESP_TIMEOUT_ERR",
     {"RespTimeoutErr", "The peer's response did not come in time.",
      "Look at the peer and at `softib trace`."}},
    {WcStatus::GeneralErr,
     "IBV_WC_GENERAL_ERR",
     {"GeneralErr", "An error without a status of its own.", "`softib trace` says more."}},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].status) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "one row per status, indexed by it");

}  // namespace

Explanation explain(WcStatus status) {
  const auto index = static_cast<std::size_t>(status);
  return index < kRows.size() ? kRows[index].words : Explanation{};
}

const char* wc_status_name(WcStatus status) {
  const auto index = static_cast<std::size_t>(status);
  return index < kRows.size() ? kRows[index].verbs_name : "an unknown status";
}

}  // namespace ib::verbs
