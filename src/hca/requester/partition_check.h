// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Partition check of datagrams [IBA1 10.9.3]; that of connections is in PeerCache::resolve.
#pragma once

#include "hca/requester/attempt.h"

#include <cstdint>

namespace ib::hca {

// The P_Key that a message carries; 0: none. Queue pair 1 has those of its port, and each message
// names one.
std::uint16_t own_pkey(const Attempt& attempt);

// Whether `target` on `port` is in that partition. Queue pair 1 is in all partitions of its port;
// `matched` is then the index of the entry that let the message in.
bool partition_accepted(std::uint16_t pkey, const QpEntry& target, const PortEntry& port,
                        std::uint16_t& matched);

}  // namespace ib::hca
