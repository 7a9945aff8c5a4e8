// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Attempt: one request that is being executed, and all that this may touch. The
// operations are free functions over it; each may be called again for the same request if it
// returned Wait.
#pragma once

#include "hca/requester/failure_reports.h"
#include "hca/requester/peer_cache.h"
#include "hca/requester/responder_side.h"
#include "hca/requester/retry_state.h"
#include "hca/requester/send_queue.h"

namespace ib::hca {

struct Attempt {
  MemoryPlane& plane;
  const RequesterConfig& config;
  const RetryLimits& limits;
  QpEntry& own;
  SendQueue& queue;
  PeerCache& peers;
  ResponderSide& responder;
  Transfer& transfer;
  FailureReports& reports;
  const SendWqe& wqe;
  LocalPieces& pieces;  // this process's side of the data, after gather()
  Arrival arrival;      // what the other end gets to see of it

  Peer& peer() { return peers.peer(); }
};

// Finds this process's side of the data (gather.cpp): SGEs against their keys, or inline bytes.
// If it fails, nothing has changed at either end.
Outcome gather(Attempt& attempt, std::uint32_t access);

// To a connected peer, which has been resolved.
Outcome send_message(Attempt& attempt);  // send.cpp
Outcome rdma_write(Attempt& attempt);    // rdma.cpp
Outcome rdma_read(Attempt& attempt);
Outcome atomic(Attempt& attempt);        // atomics.cpp
Outcome atomic_write(Attempt& attempt);  // ATOMIC WRITE [IBA1 annex A19]: 8 bytes at once

Outcome flush_memory(Attempt& attempt);  // FLUSH [IBA1 1.6 annex A19]

// READ, atomics and FLUSH need room for them at both ends [IBA1 9.7.4.1.2, 11.2.5.2] (atomics.cpp).
// Done, or why not: first what the requester itself finds, then what the responder does.
Outcome check_own_depth(const Attempt& attempt);
Outcome check_peer_depth(Attempt& attempt);

Outcome send_datagram(Attempt& attempt);  // datagrams.cpp: UD, SMI, GSI

// Work that needs no peer (memory_window_bind.cpp).
Outcome bind_window(Attempt& attempt);
Outcome invalidate_local(Attempt& attempt);

}  // namespace ib::hca
