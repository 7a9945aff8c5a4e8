// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a queue pair takes a datagram [IBA1 9.6.1, 9.6.2].
#pragma once

#include "hca/requester/attempt.h"

namespace ib::hca {

// Returns Done or Dropped, for `bytes` to `target`. attempt.arrival.pkey_index is then the entry of
// the port's table by which a queue pair 1 took it.
Outcome check_datagram(Attempt& attempt, std::uint64_t bytes, const QpEntry& target);

}  // namespace ib::hca
