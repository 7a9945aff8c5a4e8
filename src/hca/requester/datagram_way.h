// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way of a datagram through the switches of its subnet, as softibd has found it
// (hca/layout/way_table.h); a poster that is the first to need one requests it.
#pragma once

#include "hca/requester/attempt.h"

#include <cstdint>

namespace ib::hca {

struct DatagramWay {
  // Done: packets arrive. Dropped, with the reason. Wait: softibd does not answer.
  Outcome outcome = Outcome::done();
  std::uint32_t port = kNone;  // where they arrive; index in the port table
  WayEntry* entry = nullptr;   // counts them; nullptr: no switch is on it
  std::uint32_t most = verbs::mtu_bytes(verbs::Mtu::B4096);  // payload of a packet

  // The same for one packet with so much payload.
  Outcome outcome_of(std::uint32_t bytes) const {
    if (!outcome.is_done() || bytes <= most) return outcome;
    return Outcome::dropped(Cause::WayMtu, std::uint64_t{bytes} << 32 | most);
  }
};

// To one queue pair; also where no switches are.
DatagramWay way_to_one(Attempt& attempt, const PortEntry& from);
// To a member of the group at port `member`.
DatagramWay way_to_member(Attempt& attempt, const PortEntry& from, std::uint32_t member);
// Returns the entry that counts what goes to the group, or nullptr if no switch is behind the port.
WayEntry* way_to_group(Attempt& attempt, const PortEntry& from);

}  // namespace ib::hca
