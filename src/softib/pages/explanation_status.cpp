// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion statuses in words [IBA1 11.6.2].
#include "softib/pages/explanation.h"

namespace ib::softib {

const char* verbs_name(verbs::WcStatus status) {
  using enum verbs::WcStatus;
  switch (status) {
    case Success: return "IBV_WC_SUCCESS";
    case LocLenErr: return "IBV_WC_LOC_LEN_ERR";
    case LocQpOpErr: return "IBV_WC_LOC_QP_OP_ERR";
    case LocEecOpErr: return "IBV_WC_LOC_EEC_OP_ERR";
    case LocProtErr: return "IBV_WC_LOC_PROT_ERR";
    case WrFlushErr: return "IBV_WC_WR_FLUSH_ERR";
    case MwBindErr: return "IBV_WC_MW_BIND_ERR";
    case BadRespErr: return "IBV_WC_BAD_RESP_ERR";
    case LocAccessErr: return "IBV_WC_LOC_ACCESS_ERR";
    case RemInvReqErr: return "IBV_WC_REM_INV_REQ_ERR";
    case RemAccessErr: return "IBV_WC_REM_ACCESS_ERR";
    case RemOpErr: return "IBV_WC_REM_OP_ERR";
    case RetryExcErr: return "IBV_WC_RETRY_EXC_ERR";
    case RnrRetryExcErr: return "IBV_WC_RNR_RETRY_EXC_ERR";
    case LocRddViolErr: return "IBV_WC_LOC_RDD_VIOL_ERR";
    case RemInvRdReqErr: return "IBV_WC_REM_INV_RD_REQ_ERR";
    case RemAbortErr: return "IBV_WC_REM_ABORT_ERR";
    case InvEecnErr: return "IBV_WC_INV_EECN_ERR";
    case InvEecStateErr: return "IBV_WC_INV_EEC_STATE_ERR";
    case FatalErr: return "IBV_WC_FATAL_ERR";
    case RespTimeoutErr: return "IBV_WC_RESP_TIMEOUT_ERR";
    case GeneralErr: return "IBV_WC_GENERAL_ERR";
  }
  return nullptr;
}

namespace {

Explanation local_status(verbs::WcStatus status) {
  using enum verbs::WcStatus;
  if (status == LocLenErr) {
    return {
        "LocLenErr",
        "The sizes do not fit on this side: a receive was too small for the message, or a send "
        "was longer than the transport allows (UD: one MTU).",
        "Post receives as large as the largest message, plus 40 bytes for the GRH on UD; compare "
        "the send's length with the port's active MTU (UD) or max_msg_sz."};
  }
  if (status == LocQpOpErr) {
    return {"LocQpOpErr",
            "The HCA could not carry out the request because of the queue pair itself, for example "
            "an operation that this transport does not have.",
            "Check opcode against QP type, the number of SGEs against the QP's caps, and reads or "
            "atomics against max_rd_atomic (0 forbids them)."};
  }
  if (status == LocProtErr) {
    return {
        "LocProtErr",
        "A scatter/gather element of the request names memory that this QP may not use: unknown "
        "lkey, another protection domain, out of the region's range, or no local write access "
        "for data that comes in.",
        "Check the lkey (still registered?), address and length of each SGE, that MR and QP "
        "have the same PD, and IBV_ACCESS_LOCAL_WRITE for receives, reads and atomics."};
  }
  if (status == LocAccessErr) {
    return {"LocAccessErr",
            "A protection error on a local buffer while data of the peer was being placed (RDMA "
            "write with immediate, or a receive).",
            "Check that the region behind the receive is still registered and has "
            "IBV_ACCESS_LOCAL_WRITE."};
  }
  return {"MwBindErr", "A memory window could not be bound or invalidated.",
          "The region needs IBV_ACCESS_MW_BIND, the window's range must lie in it, remote write or "
          "atomic of the window needs local write of the region; type 1 and 2 windows bind "
          "differently."};
}

Explanation remote_status(verbs::WcStatus status) {
  using enum verbs::WcStatus;
  if (status == RemInvReqErr) {
    return {"RemInvReqErr",
            "The peer rejected the request as invalid: its receive was too small, the operation is "
            "not enabled on its QP, or an atomic was not aligned to 8 bytes.",
            "Compare message length with the peer's receives; check the peer QP's access flags and "
            "the remote address of atomics."};
  }
  if (status == RemAccessErr) {
    return {"RemAccessErr",
            "The peer's memory did not allow the access: the rkey is unknown there, belongs to "
            "another protection domain, lacks the right, or address and length leave the region.",
            "Compare rkey, remote address and length with what the peer registered; it needs "
            "IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC on region *and* QP."};
  }
  if (status == RemOpErr) {
    return {"RemOpErr",
            "The peer could not finish its part because of its own error, mostly in the receive it "
            "had posted (bad lkey).",
            "Look at the peer: it has a completion or an asynchronous event with the reason."};
  }
  if (status == RemInvRdReqErr) {
    return {"RemInvRdReqErr", "The peer rejected an RD message (reliable datagram).",
            "softib has no RD transport; you should not see this."};
  }
  return {"RemAbortErr", "The peer aborted the operation (reliable datagram).",
          "softib has no RD transport; you should not see this."};
}

Explanation retry_status(verbs::WcStatus status) {
  using enum verbs::WcStatus;
  if (status == RetryExcErr) {
    return {"RetryExcErr",
            "The peer did not answer: the request was tried retry_cnt times without an "
            "acknowledgement. The peer process ended, its QP is not (or no longer) in RTR or RTS, "
            "is connected to another QP, or a port is down.",
            "`softib trace` says which. Check that both sides exchanged QPN, LID or GID and PSN "
            "before the first send, and that the peer did not destroy its QP too early."};
  }
  if (status == RnrRetryExcErr) {
    return {
        "RnrRetryExcErr", "The peer is alive but had no receive posted, rnr_retry times in a row.",
        "Post receives before the sender starts, post more of them, or set rnr_retry to 7 (wait "
        "for ever) and a larger min_rnr_timer on the receiver."};
  }
  return {"RespTimeoutErr", "The peer's response did not come in time.",
          "Look at the peer and at `softib trace`."};
}

}  // namespace

Explanation explain(verbs::WcStatus status) {
  using enum verbs::WcStatus;
  switch (status) {
    case Success: return {"Success", "The request is done.", "Nothing to do."};
    case LocLenErr:
    case LocQpOpErr:
    case LocProtErr:
    case LocAccessErr:
    case MwBindErr: return local_status(status);
    case RemInvReqErr:
    case RemAccessErr:
    case RemOpErr:
    case RemInvRdReqErr:
    case RemAbortErr: return remote_status(status);
    case RetryExcErr:
    case RnrRetryExcErr:
    case RespTimeoutErr: return retry_status(status);
    case WrFlushErr:
      return {
          "WrFlushErr",
          "The request was not carried out: its QP was in, or went into, the error state.",
          "This is the consequence, not the cause: look for the *first* completion with another "
          "status on this QP, or a disconnect; normal when a connection is torn down."};
    case BadRespErr:
      return {"BadRespErr", "The peer answered with something that makes no sense here.",
              "A connection of two QPs that do not belong together, or a bug; `softib trace`."};
    case FatalErr:
      return {"FatalErr", "The HCA failed.",
              "softibd has probably ended: `softib status`, and its log."};
    case GeneralErr:
      return {"GeneralErr", "An error without a status of its own.", "`softib trace` says more."};
    case LocEecOpErr:
      return {"LocEecOpErr", "An error of an end-to-end context (reliable datagram).",
              "softib has no RD transport; you should not see this."};
    case LocRddViolErr:
      return {"LocRddViolErr", "A violation of a reliable datagram domain.",
              "softib has no RD transport; you should not see this."};
    case InvEecnErr:
      return {"InvEecnErr", "A bad number of an end-to-end context (reliable datagram).",
              "softib has no RD transport; you should not see this."};
    case InvEecStateErr:
      return {"InvEecStateErr", "A bad state of an end-to-end context (reliable datagram).",
              "softib has no RD transport; you should not see this."};
  }
  return {};
}

}  // namespace ib::softib
