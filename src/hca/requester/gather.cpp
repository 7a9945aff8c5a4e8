// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/address.h"
#include "hca/requester/attempt.h"

namespace ib::hca {

using verbs::WcStatus;

Outcome gather(Attempt& attempt, std::uint32_t access) {
  const SendWqe& wqe = attempt.wqe;
  LocalPieces& pieces = attempt.pieces;
  if (wqe.stored && wqe.inline_data) {
    // Only read from: gather() for writing never sees inline data (SendQueue::check).
    pieces.add(const_cast<std::byte*>(wqe.kept_inline), wqe.inline_bytes);
    return Outcome::done();
  }
  for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
    const Sge& sge = wqe.sge[i];
    if (wqe.inline_data) {
      pieces.add(pointer_to(sge.address), sge.length);
      continue;
    }
    const Access local = attempt.plane.local().resolve(sge, attempt.config.pd, access, pieces);
    if (!local.ok()) return Outcome::fail(WcStatus::LocProtErr, local.cause, local.detail);
  }
  if (pieces.total > kMaxMessage) {
    return Outcome::fail(WcStatus::LocLenErr, Cause::LocalLength, pieces.total);
  }
  return Outcome::done();
}

}  // namespace ib::hca
