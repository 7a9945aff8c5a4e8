// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Causes (verbs/control.h) in words. A completion carries its cause in vendor_err.
#include "softib/pages/explanation.h"

namespace ib::softib {
namespace {

using verbs::control::Cause;

Explanation local_cause(Cause cause) {
  using enum Cause;
  if (cause == LocalKeyUnknown) {
    return {"LocalKeyUnknown", "The lkey names no region of this process.",
            "Was the region deregistered, or is the lkey of another process or HCA?"};
  }
  if (cause == LocalKeyOtherPd) {
    return {"LocalKeyOtherPd", "The region belongs to another protection domain than the QP.",
            "Register the region with the PD of the QP."};
  }
  if (cause == LocalKeyAccess) {
    return {"LocalKeyAccess",
            "Data should go into a region that was registered without local write.",
            "Register it with IBV_ACCESS_LOCAL_WRITE."};
  }
  if (cause == LocalKeyRange) {
    return {"LocalKeyRange", "Address and length of an SGE reach beyond the region.",
            "Compare them with the address and length given to ibv_reg_mr."};
  }
  if (cause == LocalPieces) {
    return {"LocalPieces", "The SGEs touch too many pieces of memory (physical regions).",
            "Use fewer or longer ranges, or split the request."};
  }
  if (cause == LocalMemoryGone) {
    return {"LocalMemoryGone",
            "Memory of the poster's own is registered, but not mapped any more, or not writable.",
            "Deregister regions before munmap(), free() or mprotect()."};
  }
  return {"LocalLength", "The message is longer than the transport or the path allows.",
          "UD: at most the path MTU; RC and UC: at most max_msg_sz of the port."};
}

Explanation remote_key_cause(Cause cause) {
  using enum Cause;
  if (cause == RemoteKeyUnknown) {
    return {"RemoteKeyUnknown",
            "The rkey names nothing at the peer: it never did, was deregistered or invalidated.",
            "Does the peer keep its region until you are done? Is the rkey in host byte order?"};
  }
  if (cause == RemoteKeyOtherPd) {
    return {"RemoteKeyOtherPd",
            "The peer's region belongs to another protection domain than its QP.",
            "At the peer, register the region with the PD of the QP."};
  }
  if (cause == RemoteKeyAccess) {
    return {"RemoteKeyAccess",
            "The peer's region was registered without the right that this needs.",
            "At the peer, add IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC to ibv_reg_mr."};
  }
  return {"RemoteKeyRange", "Remote address and length reach beyond the peer's region.",
          "Compare them with what the peer registered; with IBV_ACCESS_ZERO_BASED addresses start "
          "at 0."};
}

Explanation remote_cause(Cause cause) {
  using enum Cause;
  if (cause == RemoteQpAccess) {
    return {"RemoteQpAccess", "The peer's QP does not allow this operation.",
            "At the peer, set qp_access_flags in the transition to INIT (or later)."};
  }
  if (cause == RemoteAlignment) {
    return {"RemoteAlignment", "The remote address of an atomic is not a multiple of 8.",
            "Align the target to 8 bytes."};
  }
  if (cause == RemoteLength) {
    return {"RemoteLength", "The peer's receive is smaller than the message.",
            "Post larger receives, or send less."};
  }
  if (cause == RemoteReceiveKey) {
    return {"RemoteReceiveKey", "The peer's receive names memory it may not use.",
            "At the peer, check lkey, range and local write access of the posted receives."};
  }
  return {"NoReceive", "The peer had no receive posted.",
          "Post receives before the sender starts; rnr_retry 7 waits for ever."};
}

Explanation peer_cause(Cause cause) {
  using enum Cause;
  if (cause == PeerNotReady) {
    return {"PeerNotReady", "The peer's QP is in a state in which it does not answer.",
            "Bring it to RTR before you send; if it is in ERR, look for its first error."};
  }
  if (cause == PeerUnknown) {
    return {"PeerUnknown", "There is no such QP at that LID, or it is connected to another one.",
            "Check the exchanged QPN and LID (`softib status` shows the LIDs that there are); was "
            "the peer restarted?"};
  }
  if (cause == PeerProcessGone) {
    return {"PeerProcessGone", "The process that owned the peer's QP has ended.",
            "Look for its exit status or its crash."};
  }
  if (cause == HcaAsleep) {
    return {"HcaAsleep", "The HCA at one end sleeps; the request waits and runs after resume.",
            "`softib power resume`."};
  }
  if (cause == HcaRemoved) {
    return {"HcaRemoved", "The HCA of this QP, or that of its peer, was removed.",
            "Close the device and open it anew once `softib hca add` has put an HCA there."};
  }
  if (cause == PortDown) {
    return {"PortDown", "A port on the way is not active.",
            "`softib status` shows the ports; `softib port up`."};
  }
  return {"MemoryGone", "Registered memory is no longer mapped in its process.",
          "Deregister regions before munmap() or free(); mind fork() and MADV_DONTFORK."};
}

}  // namespace

Explanation explain(Cause cause) {
  using enum Cause;
  switch (cause) {
    case None: return {"None", "No cause was noted.", "The completion status says what is known."};
    case LocalKeyUnknown:
    case LocalKeyOtherPd:
    case LocalKeyAccess:
    case LocalKeyRange:
    case LocalPieces:
    case LocalMemoryGone:
    case LocalLength: return local_cause(cause);
    case RemoteKeyUnknown:
    case RemoteKeyOtherPd:
    case RemoteKeyAccess:
    case RemoteKeyRange: return remote_key_cause(cause);
    case RemoteQpAccess:
    case RemoteAlignment:
    case RemoteLength:
    case RemoteReceiveKey:
    case NoReceive: return remote_cause(cause);
    case PeerNotReady:
    case PeerUnknown:
    case PeerProcessGone:
    case PortDown:
    case HcaAsleep:
    case HcaRemoved:
    case MemoryGone: return peer_cause(cause);
    case ReadDepth:
      return {
          "ReadDepth",
          "A read or atomic on a QP with max_rd_atomic 0, or a peer with "
          "max_dest_rd_atomic 0.",
          "Set max_rd_atomic (to RTS) and the peer's max_dest_rd_atomic (to RTR) to 1 or more."};
    case WindowBind:
      return {"WindowBind", "A memory window was bound against the rules.",
              "Region with IBV_ACCESS_MW_BIND, range inside the region, same PD, local write for "
              "remote write or atomic."};
    case CqOverflow:
      return {"CqOverflow", "A completion did not fit into the completion queue.",
              "Make the CQ as large as all requests that may be outstanding, or poll it sooner."};
    case QpFlushed:
      return {"QpFlushed", "The QP was in the error state.",
              "Look for the first error on this QP; this one is its consequence."};
    case XrcReceiveQueue:
      return {"XrcReceiveQueue",
              "The message named a shared receive queue that is not in the peer's XRC domain.",
              "Exchange the SRQ's number (ibv_get_srq_num) and create it in the domain of the "
              "receiving QP."};
    case PkeyMismatch:
      return {"PkeyMismatch", "The partition keys of the two ports do not match.",
              "Compare pkey_index and the P_Key tables of both ports; two limited members do not "
              "talk to each other."};
    case PsnMismatch:
      return {"PsnMismatch",
              "The first packet's number is not the one that the other side expects.",
              "rq_psn on each side must be the sq_psn of the other; exchange them with the QPN."};
    case MtuMismatch:
      return {"MtuMismatch",
              "The path MTUs of the two QPs differ, and the message has several packets.",
              "Set the same path_mtu on both sides: the smaller active_mtu of the two ports."};
    case RemoteInvalidate:
      return {"RemoteInvalidate",
              "A SEND with invalidate named a key that is of no type 2 window of the peer's QP.",
              "Send the rkey of a window that is bound to that very QP, once."};
    case QkeyMismatch:
      return {"QkeyMismatch", "The Q_Key of a datagram is not that of the receiving QP.",
              "Use the peer's Q_Key in wr.ud.remote_qkey."};
  }
  return {};
}

}  // namespace ib::softib
