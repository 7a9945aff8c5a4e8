// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Performance management [IBA1 16.1]: its MADs and the counters of ports in them. A counter stays
// at its largest value until somebody clears it.
#pragma once

#include "mad/header.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::mad {

// 16.1.2; device management has an RMPP header and a key where this has reserved bytes.
struct PerfMad {
  MadHeader header;
  std::array<std::uint8_t, 40> reserved{};
  std::array<std::uint8_t, 192> data{};
};
static_assert(sizeof(PerfMad) == kMadSize && offsetof(PerfMad, data) == 64);

namespace perf_attribute {
inline constexpr std::uint16_t kPortCounters = 0x0012;
inline constexpr std::uint16_t kPortRcvErrorDetails = 0x0015;
inline constexpr std::uint16_t kPortXmitDiscardDetails = 0x0016;
inline constexpr std::uint16_t kPortCountersExtended = 0x001d;
}  // namespace perf_attribute

// CapabilityMask of its ClassPortInfo [16.1.3.1], and CapabilityMask2.
inline constexpr std::uint16_t kPerfAllPortSelect = 1u << 8;
inline constexpr std::uint16_t kPerfExtendedWidth = 1u << 9;
inline constexpr std::uint16_t kPerfXmitWait = 1u << 12;
inline constexpr std::uint32_t kPerf2AdditionalExtended = 1u << 1;  // error counters of 64 bits

inline constexpr std::uint8_t kAllPorts = 0xff;  // PortSelect: the sum of all ports

struct PortCounters {  // 16.1.3.5
  std::uint8_t reserved = 0;
  std::uint8_t port_select = 0;
  Be16 counter_select;
  Be16 symbol_errors;
  std::uint8_t link_error_recovery = 0;
  std::uint8_t link_downed = 0;
  Be16 receive_errors;
  Be16 remote_physical_errors;
  Be16 switch_relay_errors;
  Be16 transmit_discards;
  std::uint8_t transmit_constraint_errors = 0;
  std::uint8_t receive_constraint_errors = 0;
  std::uint8_t counter_select2 = 0;
  std::uint8_t integrity_overrun = 0;  // LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors
  Be16 qp1_dropped;
  Be16 vl15_dropped;
  Be32 transmit_data;  // words of 4 bytes
  Be32 receive_data;
  Be32 transmit_packets;
  Be32 receive_packets;
  Be32 transmit_wait;
};
static_assert(sizeof(PortCounters) == 44 && offsetof(PortCounters, receive_errors) == 8);
static_assert(offsetof(PortCounters, counter_select2) == 18 &&
              offsetof(PortCounters, vl15_dropped) == 22 &&
              offsetof(PortCounters, transmit_wait) == 40);

struct PortCountersExtended {  // 16.1.4.11
  std::uint8_t reserved = 0;
  std::uint8_t port_select = 0;
  Be16 counter_select;
  Be32 counter_select2;
  Be64 transmit_data;
  Be64 receive_data;
  Be64 transmit_packets;
  Be64 receive_packets;
  Be64 unicast_transmit_packets;
  Be64 unicast_receive_packets;
  Be64 multicast_transmit_packets;
  Be64 multicast_receive_packets;
  // In the order of PortCounters. They are reserved bytes without kPerf2AdditionalExtended.
  std::array<Be64, 12> errors{};
  Be64 transmit_wait;
  Be64 qp1_dropped;
};
static_assert(sizeof(PortCountersExtended) == 184 &&
              offsetof(PortCountersExtended, unicast_transmit_packets) == 40 &&
              offsetof(PortCountersExtended, errors) == 72);

struct PortRcvErrorDetails {  // 16.1.4.1
  std::uint8_t reserved = 0;
  std::uint8_t port_select = 0;
  Be16 counter_select;
  Be16 local_physical_errors;
  Be16 malformed_packets;
  Be16 buffer_overruns;
  Be16 dlid_mapping_errors;
  Be16 vl_mapping_errors;
  Be16 looping_errors;
};
static_assert(sizeof(PortRcvErrorDetails) == 16 &&
              offsetof(PortRcvErrorDetails, buffer_overruns) == 8);

struct PortXmitDiscardDetails {  // 16.1.4.2
  std::uint8_t reserved = 0;
  std::uint8_t port_select = 0;
  Be16 counter_select;
  Be16 inactive;  // the port is not up
  Be16 neighbor_mtu;
  Be16 switch_lifetime;
  Be16 head_of_queue_lifetime;
};
static_assert(sizeof(PortXmitDiscardDetails) == 12 &&
              offsetof(PortXmitDiscardDetails, head_of_queue_lifetime) == 10);

}  // namespace ib::mad
