// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells softibd's trace of work requests that ibv_post_send and ibv_post_recv refuse: a program
// sees only an errno. Out of the way of posting: called once errno is known.
#pragma once

#include "base/result.h"
#include "host_abi/provider/objects.h"

namespace ib::host_abi {

// The first refusal of each kind of a queue pair: many programs post until the queue is full.
void tell_refusal(Qp& qp, const ibv_send_wr& wr, Status status);
void tell_refusal(Qp& qp, const ibv_recv_wr& wr, Status status);

}  // namespace ib::host_abi
