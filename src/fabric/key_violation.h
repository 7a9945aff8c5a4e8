// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A packet with a P_Key or Q_Key that its receiver does not take: where it is dropped, what that
// port counts, and what its agent has to tell a subnet manager [IBA1 10.9.4, 14.2.5.1].
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"

#include <cstdint>

namespace ib::fabric {

struct KeyViolation {
  const Port* from = nullptr;  // ports of channel adapters
  const Port* to = nullptr;
  const Port* at = nullptr;  // of a switch, that is said to drop them; nullptr: see below
  bool is_pkey = false;      // else of a Q_Key
  std::uint32_t key = 0;
  std::uint8_t service_level = 0;
  std::uint32_t source_qp = 0;
  std::uint32_t target_qp = 0;
};

// PortInfo: PartitionEnforcementInbound, PartitionEnforcementOutbound [IBA1 14.2.5.6].
inline constexpr std::uint8_t kEnforcesIn = 8;
inline constexpr std::uint8_t kEnforcesOut = 4;
// Whether a port of a switch drops packets with this P_Key that come in, or go out. A limited
// member passes a table that has the partition as limited: OpenSM gives such a port the P_Keys of
// the adapter behind it, and that two limited members do not reach each other is the receiver's
// matter.
bool drops_partition(const Port& port, std::uint8_t direction, std::uint32_t pkey);

// Counts `times` violations at the port that drops the packets, and returns it: that which is said
// to; else a port of a switch that enforces partitions and is not in this one, at the sender's
// cable or at the receiver's; or the receiver. Returns nullptr if the port that is said to drop
// them does not.
const Port* count_violations(Fabric& fabric, const KeyViolation& violation, std::uint32_t times);

}  // namespace ib::fabric
