// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells softibd's trace of work requests that are refused when they are posted: a program sees only
// an errno. Out of the way of posting: called once errno is known. Many programs post until the
// queue is full, so what repeats is counted and told now and then (verbs/report_count.h).
#pragma once

#include "base/result.h"
#include "host_abi/provider/objects.h"
#include "user/work_request.h"

namespace ib::host_abi {

void tell_refusal(Qp& qp, const ibv_send_wr& wr, Status status);
void tell_refusal(Qp& qp, const ibv_recv_wr& wr, Status status);
void tell_refusal(Srq& srq, const ibv_recv_wr& wr, Status status);

// ibv_wr_complete: what the batch found itself (SendBatch::refusal); for want of room; and a
// request of it.
void tell_batch_refusal(Qp& qp, const verbs::control::TraceErrorIn& refusal);
void tell_no_room(Qp& qp, std::size_t requests);
void tell_refusal(Qp& qp, const user::SendRequest& request, Status status);

}  // namespace ib::host_abi
