// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The causes of failed work requests, finer than completion statuses.
#pragma once

#include <cstdint>

namespace ib::verbs::control {

// The cause of a failed work request, as the poster saw it; softibd makes a sentence of it.
enum class Cause : std::uint32_t {
  None = 0,
  LocalKeyUnknown,  // lkey names no region of this process
  LocalKeyOtherPd,
  LocalKeyAccess,  // region lacks local write
  LocalKeyRange,
  LocalLength,       // message longer than the transport or path allows
  RemoteKeyUnknown,  // rkey names no region (never did, was deregistered or invalidated)
  RemoteKeyOtherPd,
  RemoteKeyAccess,  // `detail` = the region's access flags
  RemoteKeyRange,
  RemoteQpAccess,    // the peer QP does not allow the operation; `detail` = its access flags
  RemoteAlignment,   // atomic not on 8 bytes
  RemoteLength,      // receive buffer too small; `detail` = its size
  RemoteReceiveKey,  // a receive's own lkey is wrong
  NoReceive,         // RNR; `detail` = tries
  PeerNotReady,      // peer QP in a state that does not answer; `detail` = its state
  PeerUnknown,       // no such QP, or it is not connected to this one
  PeerProcessGone,   // `detail` = pid
  PortDown,
  MemoryGone,  // registered memory is unmapped
  ReadDepth,   // max_rd_atomic 0
  WindowBind,  // bind rules [IBA1 10.6.7]
  CqOverflow,
  QpFlushed,
  PkeyMismatch,
  QkeyMismatch,
  XrcReceiveQueue,   // no SRQ of that number in the peer's XRC domain; `detail` = the number
  HcaAsleep,         // at either end; the request runs after resume
  HcaRemoved,        // the HCA of this queue pair, or of its peer, was pulled out
  LocalPieces,       // touches more ranges of physical regions than `detail`
  PsnMismatch,       // sq_psn here is not rq_psn there; `detail` = sq_psn << 32 | rq_psn
  MtuMismatch,       // path MTUs differ; `detail` = bytes here << 32 | bytes there
  RemoteInvalidate,  // SEND with invalidate of no window of the peer QP's; `detail` = the key
  LocalMemoryGone,   // memory of the poster's own is unmapped, or may not be used like this
  // Of the way through the switches; `detail` = way_detail():
  WayMissing,    // the table of a switch has no port for the LID, or leads to another adapter
  WayDown,       // a cable is down, or the link is not Active
  WayInCircle,   // the tables lead in a circle
  WayPartition,  // a switch that enforces partitions drops the P_Key
  WayLane,       // a table of a switch has no virtual lane for the service level
  WayMtu,        // a link carries shorter packets only; `detail` = bytes of the path MTU, or of the
                 // datagram << 32 | bytes that pass
};

// The port of the fabric (its index in the graph) at which a way ends, and the LID to which it
// leads.
constexpr std::uint64_t way_detail(std::uint32_t port, std::uint16_t lid) {
  return std::uint64_t{port} << 32 | lid;
}
constexpr bool is_of_way(Cause cause) {
  return cause >= Cause::WayMissing && cause <= Cause::WayMtu;
}

}  // namespace ib::verbs::control
