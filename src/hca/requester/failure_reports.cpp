// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/failure_reports.h"

#include "verbs/report_count.h"

namespace ib::hca {

void FailureReports::failed(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer,
                            std::uint32_t times) {
  verbs::control::TraceErrorIn error;
  error.qp_index = qp_;
  error.peer_qpn = peer;
  verbs::set_times(error, times);
  error.status = outcome.status;
  error.peer_status = outcome.peer_status;
  error.opcode = wqe.opcode;
  error.cause = outcome.cause;
  error.detail = outcome.detail;
  error.wr_id = wqe.wr_id;
  error.address = wqe.remote_address;
  const bool flush = wqe.opcode == verbs::WrOpcode::Flush;
  error.length = flush ? wqe.compare_add : wqe.inline_bytes + asked_for(wqe);
  error.key = wqe.rkey;
  const bool local =
      outcome.cause == Cause::LocalKeyUnknown || outcome.cause == Cause::LocalKeyOtherPd ||
      outcome.cause == Cause::LocalKeyAccess || outcome.cause == Cause::LocalKeyRange;
  if (local && wqe.num_sge > 0) {
    error.key = wqe.sge[0].lkey;
    error.address = wqe.sge[0].address;
  }
  host_.trace(error);
}

void FailureReports::dropped(const SendWqe& wqe, const Outcome& outcome, std::uint32_t peer) {
  // Queue pairs 0 and 1 query ports that may be silent: losses are the matter of their protocol.
  const auto cause = static_cast<std::size_t>(outcome.cause);
  if (outcome.cause == Cause::None || cause >= drops_.size() || verbs::is_special(type_)) return;
  const std::uint32_t times = verbs::report_count(++drops_[cause]);
  if (times != 0) failed(wqe, outcome, peer, times);
}

}  // namespace ib::hca
