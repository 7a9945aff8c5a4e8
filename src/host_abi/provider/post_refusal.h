// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reports work requests that are refused when they are posted to softibd's trace: a program sees
// only an errno. Called after errno is set, outside of the posting path. Many programs post until
// the queue is full, so repetitions are counted and reported now and then (verbs/report_count.h).
#pragma once

#include "base/result.h"
#include "host_abi/provider/objects.h"
#include "user/work_request.h"

namespace ib::host_abi {

void tell_refusal(Qp& qp, const ibv_send_wr& wr, Status status);
void tell_refusal(Qp& qp, const ibv_recv_wr& wr, Status status);
void tell_refusal(Srq& srq, const ibv_recv_wr& wr, Status status);

// ibv_wr_complete: the batch's own refusal (SendBatch::refusal); lack of room; a request of it.
void tell_batch_refusal(Qp& qp, const verbs::control::TraceErrorIn& refusal);
void tell_no_room(Qp& qp, std::size_t requests);
void tell_refusal(Qp& qp, const hca::SendWqe& wqe, Status status);

}  // namespace ib::host_abi
