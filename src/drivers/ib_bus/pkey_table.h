// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Extra P_Keys of a port at run time: the table that queue pairs index, and the partitions that
// ib_bus makes children of [IBA1 10.9].
#pragma once

#include "drivers/soft_hca/core.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::drivers {

inline constexpr std::size_t kMaxPartitions = 16;  // per port

// Enters the P_Key and raises P_Key change events. AlreadyExists: the port is in that partition,
// as a full or limited member, or has one of that name; LimitExceeded; InvalidParameter.
Status add_partition(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey,
                     std::string_view name, std::string& reason);
// Whether no program uses it: DeviceBusy names those whose queue pairs do. Drivers of the node,
// which follow its devices and tables, have no veto: that of IP over InfiniBand takes its queue
// pairs out at the event. NotFound.
Status may_remove_partition(Core& core, const fabric::Hca& hca, const fabric::Port& port,
                            std::uint16_t pkey, std::string& reason);
void remove_partition(Core& core, const fabric::Hca& hca, fabric::Port& port, std::uint16_t pkey);

}  // namespace ib::drivers
