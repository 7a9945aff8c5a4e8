// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMA WRITE and READ [IBA1 9.4.3, 9.4.4].
#include "hca/requester/attempt.h"

namespace ib::hca {

namespace access = verbs::access;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

Outcome rdma_write(Attempt& a) {
  const Outcome gathered = gather(a, 0);
  if (!gathered.is_done()) return gathered;
  const LocalPieces& pieces = a.pieces;
  if (pieces.total > a.peers.longest()) {
    return a.responder.refuse(a.peer(), a.arrival, WcStatus::RemInvReqErr,
                              {Cause::MtuMismatch, false, a.peers.path_mtus()});
  }
  Stretch target;
  const Outcome granted =
      a.responder.find_memory(a.peer(), a.arrival, pieces.total, access::kRemoteWrite, target);
  if (!granted.is_done()) return granted;
  const bool with_imm = a.wqe.opcode == WrOpcode::RdmaWriteWithImm;
  if (with_imm && !a.responder.holds_receive()) {
    const Outcome taken = a.responder.take_receive(a.peer(), a.arrival);
    if (!taken.is_done()) return taken;
  }
  const Outcome moved = a.responder.transfer_until(
      pieces.total, a.transfer, a.peer(), a.arrival, [&](std::uint64_t done, std::uint64_t step) {
        return a.plane.mover().write(pieces, done, target, done, step);
      });
  if (!moved.is_done()) return moved;
  const auto bytes = static_cast<std::uint32_t>(pieces.total);
  if (!with_imm) return Outcome::done(bytes);
  a.queue.complete_before_delivery(a.wqe, bytes);
  return a.responder.deliver(a.peer(), a.arrival, WcOpcode::RecvRdmaWithImm, bytes);
}

// The memory that an answer goes to is looked at when the answer comes: what the responder finds
// wrong comes first.
Outcome rdma_read(Attempt& a) {
  if (const Outcome depth = check_own_depth(a); !depth.is_done()) return depth;
  const std::uint64_t bytes = asked_for(a.wqe);
  if (bytes > kMaxMessage) return Outcome::fail(WcStatus::LocLenErr, Cause::LocalLength, bytes);
  if (const Outcome depth = check_peer_depth(a); !depth.is_done()) return depth;
  Stretch source;
  const Outcome granted =
      a.responder.find_memory(a.peer(), a.arrival, bytes, access::kRemoteRead, source);
  if (!granted.is_done()) return granted;
  const Outcome gathered = gather(a, access::kLocalWrite);
  if (!gathered.is_done()) return gathered;
  const LocalPieces& pieces = a.pieces;
  // Its answers come in packets of another length than this end expects [IBA1 9.9.2.4.1].
  if (bytes > a.peers.longest()) {
    return Outcome::fail(WcStatus::LocLenErr, Cause::MtuMismatch, a.peers.path_mtus());
  }
  const Outcome moved = a.responder.transfer_until(
      pieces.total, a.transfer, a.peer(), a.arrival, [&](std::uint64_t done, std::uint64_t step) {
        return a.plane.mover().read(pieces, done, source, done, step);
      });
  if (!moved.is_done()) return moved;
  return Outcome::done(static_cast<std::uint32_t>(pieces.total));
}

}  // namespace ib::hca
