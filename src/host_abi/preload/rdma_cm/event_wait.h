// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting for an event of /dev/infiniband/rdma_cm, whose descriptor is readable when there is one.
#pragma once

#include "base/time.h"
#include "host_abi/preload/rdma_cm/held_file.h"

namespace ib::host_abi::preload {

// Whether a wait is to be expected to be as short as the last one, and the descriptor is one that
// blocks: softibd may hold the answer to GET_EVENT back for so long.
bool may_wait_in_softibd(int fd);

// Waits as the descriptor says. `since`: when the program began to wait, in softibd or here.
// Returns 0, or EAGAIN, EINTR, or EIO if softibd has ended. A thread that sleeps here may be
// cancelled.
int wait_for_event(HeldFile& held, Instant since);

}  // namespace ib::host_abi::preload
