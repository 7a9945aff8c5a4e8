// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting for an event of /dev/infiniband/rdma_cm, whose descriptor is readable when there is one:
// a message of softibd's is in it, the notice, which stays there.
#pragma once

#include "base/time.h"
#include "host_abi/preload/device_files/held_file.h"
#include "platform/brief_polling.h"
#include "verbs/control.h"
#include "verbs/control_rdma_cm.h"

#include <array>
#include <cstddef>

namespace ib::host_abi::preload {

// The longest wait that is a short one, and the time that a thread polls for an event before it
// sleeps, if the last wait was short. Tests make it longer: on a busy machine no wait is as short.
extern Duration longest_short_wait;

// Whether a wait is to be expected to be as short as the last one, and the descriptor is one that
// blocks: softibd may hold the answer to GET_EVENT back for so long.
bool may_wait_in_softibd(int fd);

// A notice as it was received.
struct Notice {
  verbs::control::ReplyHeader header;
  std::array<std::byte, verbs::control::kMostRdmaCmAhead> bytes;  // RdmaCmAhead
  std::size_t size = 0;                                           // of these
  bool is_new = false;  // the thread has slept until it came
};

// Waits as the descriptor says. `since`: when the program began to wait, in softibd or here.
// Returns 0, or EAGAIN, EINTR, or EIO if softibd has ended. A thread that sleeps here may be
// cancelled.
int wait_for_event(HeldFile& held, Instant since, Notice& notice);

}  // namespace ib::host_abi::preload
