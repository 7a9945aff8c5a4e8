// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The counters of a port [IBA1 16.1.3.5, 16.1.4.11], as wide as this computer can: agents cut them
// to the width of their fields.
#pragma once

#include <cstdint>

namespace ib::fabric {

struct PacketCounters {
  std::uint64_t data = 0;  // in units of 4 bytes, headers included
  std::uint64_t packets = 0;
  std::uint64_t unicast = 0;
  std::uint64_t multicast = 0;

  void add_unicast(std::uint64_t words) {
    data += words;
    ++packets;
    ++unicast;
  }
};

struct PortCounters {
  PacketCounters sent;
  PacketCounters received;
  std::uint32_t symbol_errors = 0;
  std::uint32_t link_error_recovery = 0;
  std::uint32_t link_downed = 0;
  std::uint32_t receive_errors = 0;
  std::uint32_t remote_physical_errors = 0;
  std::uint32_t switch_relay_errors = 0;  // a switch had no way to send it on
  std::uint32_t transmit_discards = 0;    // the way on is down
  std::uint32_t transmit_constraint_errors = 0;
  std::uint32_t receive_constraint_errors = 0;
  std::uint32_t local_link_integrity_errors = 0;
  std::uint32_t buffer_overrun_errors = 0;
  std::uint32_t vl15_dropped = 0;
  std::uint64_t transmit_wait = 0;
  // Parts of the above, by reason [IBA1 16.1.4.1, 16.1.4.2].
  std::uint32_t local_physical_errors = 0;  // of receive_errors
  std::uint32_t buffer_overruns = 0;        // of receive_errors
  std::uint32_t inactive_discards = 0;      // of transmit_discards

  void discard() {
    ++transmit_discards;
    ++inactive_discards;
  }
};

// The words of a MAD on the wire: LRH, BTH, DETH, 256 bytes, ICRC [IBA1 5.2].
inline constexpr std::uint64_t kMadWords = (8 + 12 + 8 + 256 + 4) / 4;

}  // namespace ib::fabric
