// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Causes (cause.h) in words. A completion carries its cause in vendor_err.
#include "verbs/explanation.h"

#include <array>
#include <cstddef>

namespace ib::verbs {

using control::Cause;

namespace {

struct Row {
  Cause cause;
  const char* key;
  Explanation words;
};
constexpr std::array<Row, kCauseCount> kRows{{
    {Cause::None,
     "none",
     {"None", "No cause was noted.", "The completion status says what is known."}},
    {Cause::LocalKeyUnknown,
     "local_key_unknown",
     {"LocalKeyUnknown", "The lkey names no region of this process.",
      "Was the region deregistered, or is the lkey of another process or HCA?"}},
    {Cause::LocalKeyOtherPd,
     "local_key_other_pd",
     {"LocalKeyOtherPd", "The region belongs to another protection domain than the QP.",
      "Register the region with the PD of the QP."}},
    {Cause::LocalKeyAccess,
     "local_key_access",
     {"LocalKeyAccess", "Data should go into a region that was registered without local write.",
      "Register it with IBV_ACCESS_LOCAL_WRITE."}},
    {Cause::LocalKeyRange,
     "local_key_range",
     {"LocalKeyRange", "Address and length of an SGE reach beyond the region.",
      "Compare them with the address and length given to ibv_reg_mr."}},
    {Cause::LocalLength,
     "local_length",
     {"LocalLength", "The message is longer than the transport or the path allows.",
      "UD: at most the path MTU; RC and UC: at most max_msg_sz of the port."}},
    {Cause::RemoteKeyUnknown,
     "remote_key_unknown",
     {"RemoteKeyUnknown",
      "The rkey names nothing at the peer: it never did, was deregistered or invalidated.",
      "Does the peer keep its region until you are done? Is the rkey in host byte order?"}},
    {Cause::RemoteKeyOtherPd,
     "remote_key_other_pd",
     {"RemoteKeyOtherPd", "The peer's region belongs to another protection domain than its QP.",
      "At the peer, register the region with the PD of the QP."}},
    {Cause::RemoteKeyAccess,
     "remote_key_access",
     {"RemoteKeyAccess", "The peer's region was registered without the right that this needs.",
      "At the peer, add IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC to ibv_reg_mr."}},
    {Cause::RemoteKeyRange,
     "remote_key_range",
     {"RemoteKeyRange", "Remote address and length reach beyond the peer's region.",
      "Compare them with what the peer registered; with IBV_ACCESS_ZERO_BASED addresses start at "
      "0."}},
    {Cause::RemoteQpAccess,
     "remote_qp_access",
     {"RemoteQpAccess", "The peer's QP does not allow this operation.",
      "At the peer, set qp_access_flags in the transition to INIT (or later)."}},
    {Cause::RemoteAlignment,
     "remote_alignment",
     {"RemoteAlignment", "The remote address of an atomic is not a multiple of 8.",
      "Align the target to 8 bytes."}},
    {Cause::RemoteLength,
     "remote_length",
     {"RemoteLength", "The peer's receive is smaller than the message.",
      "Post larger receives, or send less."}},
    {Cause::RemoteReceiveKey,
     "remote_receive_key",
     {"RemoteReceiveKey", "The peer's receive names memory it may not use.",
      "At the peer, check lkey, range and local write access of the posted receives."}},
    {Cause::NoReceive,
     "no_receive",
     {"NoReceive", "The peer had no receive posted.",
      "Post receives before the sender starts; rnr_retry 7 waits for ever."}},
    {Cause::PeerNotReady,
     "peer_not_ready",
     {"PeerNotReady", "The peer's QP is in a state in which it does not answer.",
      "Bring it to RTR before you send; if it is in ERR, look for its first error."}},
    {Cause::PeerUnknown,
     "peer_unknown",
     {"PeerUnknown", "There is no such QP at that LID or GID, or it is connected to another one.",
      "Check the exchanged QPN and LID or GID (`softib status` shows those that there are); was "
      "the peer restarted?"}},
    {Cause::PeerProcessGone,
     "peer_process_gone",
     {"PeerProcessGone", "The process that owned the peer's QP has ended.",
      "Look for its exit status or its crash."}},
    {Cause::PortDown,
     "port_down",
     {"PortDown", "A port on the way is not active.",
      "`softib status` shows the ports; `softib port up`."}},
    {Cause::MemoryGone,
     "memory_gone",
     {"MemoryGone", "Registered memory is no longer mapped in its process.",
      "Deregister regions before munmap() or free(); mind fork() and MADV_DONTFORK."}},
    {Cause::ReadDepth,
     "read_depth",
     {"ReadDepth",
      "A read or atomic on a QP with max_rd_atomic 0, or a peer with max_dest_rd_atomic 0.",
      "Set max_rd_atomic (to RTS) and the peer's max_dest_rd_atomic (to RTR) to 1 or more."}},
    {Cause::WindowBind,
     "window_bind",
     {"WindowBind", "A memory window was bound against the rules.",
      "Region with IBV_ACCESS_MW_BIND, range inside the region, same PD, local write for remote "
      "write or atomic."}},
    {Cause::CqOverflow,
     "cq_overflow",
     {"CqOverflow", "A completion did not fit into the completion queue.",
      "Make the CQ as large as all requests that may be outstanding, or poll it sooner."}},
    {Cause::QpFlushed,
     "qp_flushed",
     {"QpFlushed", "The QP was in the error state.",
      "Look for the first error on this QP; this one is its consequence."}},
    {Cause::PkeyMismatch,
     "pkey_mismatch",
     {"PkeyMismatch", "The partition keys of the two ports do not match.",
      "Compare pkey_index and the P_Key tables of both ports; two limited members do not talk to "
      "each other."}},
    {Cause::QkeyMismatch,
     "qkey_mismatch",
     {"QkeyMismatch", "The Q_Key of a datagram is not that of the receiving QP.",
      "Use the peer's Q_Key in wr.ud.remote_qkey."}},
    {Cause::XrcReceiveQueue,
     "xrc_receive_queue",
     {"XrcReceiveQueue",
      "The message named a shared receive queue that is not in the peer's XRC domain.",
      "Exchange the SRQ's number (ibv_get_srq_num) and create it in the domain of the receiving "
      "QP."}},
    {Cause::HcaAsleep,
     "hca_asleep",
     {"HcaAsleep", "The HCA at one end sleeps; the request waits and runs after resume.",
      "`softib power resume`."}},
    {Cause::HcaRemoved,
     "hca_removed",
     {"HcaRemoved", "The HCA of this QP, or that of its peer, was removed.",
      "Close the device and open it anew once `softib hca add` has put an HCA there."}},
    {Cause::LocalPieces,
     "local_pieces",
     {"LocalPieces", "The SGEs touch too many pieces of memory (physical regions).",
      "Use fewer or longer ranges, or split the request."}},
    {Cause::PsnMismatch,
     "psn_mismatch",
     {"PsnMismatch", "The first packet's number is not the one that the other side expects.",
      "rq_psn on each side must be the sq_psn of the other; exchange them with the QPN."}},
    {Cause::MtuMismatch,
     "mtu_mismatch",
     {"MtuMismatch", "The path MTUs of the two QPs differ, and the message has several packets.",
      "Set the same path_mtu on both sides: the smaller active_mtu of the two ports."}},
    {Cause::RemoteInvalidate,
     "remote_invalidate",
     {"RemoteInvalidate",
      "A SEND with invalidate named a key that is of no type 2 window of the peer's QP.",
      "Send the rkey of a window that is bound to that very QP, once."}},
    {Cause::LocalMemoryGone,
     "local_memory_gone",
     {"LocalMemoryGone",
      "Memory of the poster's own is registered, but not mapped any more, or not writable.",
      "Deregister regions before munmap(), free() or mprotect()."}},
    {Cause::WayMissing,
     "way_missing",
     {"WayMissing", "A switch on the way has no port for the LID in its table.",
      "`softib path A B` follows the tables; look at what the subnet manager has written, and "
      "why."}},
    {Cause::WayDown,
     "way_down",
     {"WayDown", "A cable on the way is down, or its link is not Active.",
      "`softib path A B` names it; `softib cable up`, or let the subnet manager sweep."}},
    {Cause::WayInCircle,
     "way_in_circle",
     {"WayInCircle", "The tables of the switches send the LID in a circle.",
      "`softib path A B` follows the tables; the subnet manager has to write others."}},
    {Cause::WayPartition,
     "way_partition",
     {"WayPartition", "A switch that enforces partitions drops packets with this P_Key.",
      "Compare the P_Key of the queue pair with the table of that port of the switch (`smpquery "
      "pkeys`)."}},
    {Cause::WayLane,
     "way_lane",
     {"WayLane", "A switch on the way has no virtual lane for the service level.",
      "Use the SL of the path record; compare it with `smpquery sl2vl`."}},
    {Cause::WayMtu,
     "way_mtu",
     {"WayMtu", "A link on the way carries shorter packets only.",
      "Set the path_mtu of the path record, on both sides."}},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].cause) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "one row per cause, indexed by it");

}  // namespace

Explanation explain(Cause cause) {
  const auto index = static_cast<std::size_t>(cause);
  return index < kRows.size() ? kRows[index].words : Explanation{};
}

const char* cause_name(Cause cause) {
  const auto index = static_cast<std::size_t>(cause);
  return index < kRows.size() ? kRows[index].key : "unknown";
}

}  // namespace ib::verbs
