// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SEND to a connected queue pair, with immediate data or an invalidation [IBA1 9.4.1].
#include "hca/requester/attempt.h"

namespace ib::hca {

using verbs::QpType;
using verbs::WcOpcode;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

// All is in place: the completions of both ends.
Outcome finish_send(Attempt& a, std::uint32_t bytes, const ResponderSide::Carried& carried) {
  // When the data is in its place and not before [IBA1 9.4.1.1.3].
  if (a.wqe.opcode == WrOpcode::SendWithInv) {
    const Outcome invalidated = a.responder.invalidate(a.peer(), a.arrival);
    if (!invalidated.is_done()) return invalidated;
  }
  a.queue.complete_before_delivery(a.wqe, bytes);
  return a.responder.deliver(a.peer(), a.arrival, WcOpcode::Recv, bytes, &carried);
}

}  // namespace

Outcome send_message(Attempt& a) {
  const Outcome gathered = gather(a, 0);
  if (!gathered.is_done()) return gathered;
  const LocalPieces& pieces = a.pieces;
  const bool fits_path = pieces.total <= a.peers.longest();
  if (!fits_path && a.config.type == QpType::Uc) {
    return a.responder.refuse(a.peer(), a.arrival, WcStatus::RemInvReqErr,
                              {Cause::MtuMismatch, false, a.peers.path_mtus()});
  }
  if (!a.responder.holds_receive()) {
    const Outcome taken = a.responder.take_receive(a.peer(), a.arrival);
    if (!taken.is_done()) return taken;
  }
  if (!fits_path) {
    return a.responder.receive_failed(a.peer(), a.arrival, WcStatus::LocLenErr,
                                      WcStatus::RemInvReqErr, Cause::MtuMismatch,
                                      a.peers.path_mtus());
  }
  const std::uint64_t capacity = a.responder.receive().capacity();
  if (pieces.total > capacity) {
    return a.responder.receive_failed(a.peer(), a.arrival, WcStatus::LocLenErr,
                                      WcStatus::RemInvReqErr, Cause::RemoteLength, capacity);
  }
  ResponderSide::Carried carried;
  const Outcome placed = a.responder.place(a.peer(), a.arrival, pieces, a.transfer, carried);
  if (!placed.is_done()) return placed;
  return finish_send(a, static_cast<std::uint32_t>(pieces.total), carried);
}

}  // namespace ib::hca
