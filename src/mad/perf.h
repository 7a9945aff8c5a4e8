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
inline constexpr std::uint16_t kPortSamplesControl = 0x0010;
inline constexpr std::uint16_t kPortSamplesResult = 0x0011;
inline constexpr std::uint16_t kPortCounters = 0x0012;
inline constexpr std::uint16_t kPortRcvErrorDetails = 0x0015;
inline constexpr std::uint16_t kPortXmitDiscardDetails = 0x0016;
inline constexpr std::uint16_t kPortCountersExtended = 0x001d;
inline constexpr std::uint16_t kPortSamplesResultExtended = 0x001e;
}  // namespace perf_attribute

// CapabilityMask of its ClassPortInfo [16.1.3.1], and CapabilityMask2.
inline constexpr std::uint16_t kPerfAllPortSelect = 1u << 8;
inline constexpr std::uint16_t kPerfExtendedWidth = 1u << 9;
inline constexpr std::uint16_t kPerfXmitWait = 1u << 12;
inline constexpr std::uint32_t kPerf2AdditionalExtended = 1u << 1;  // error counters of 64 bits

inline constexpr std::uint8_t kAllPorts = 0xff;  // PortSelect: the sum of all ports

// A sample: what up to 15 counters count within an interval.
inline constexpr std::size_t kSampleCounters = 15;

struct PortSamplesControl {  // 16.1.3.2
  std::uint8_t op_code = 0;
  std::uint8_t port_select = 0;
  // From here to `vendor_mask` only answers have values; those of a Set do not matter.
  std::uint8_t tick = 0;           // a tick is 10 * (tick + 1) bits of a lane long
  std::uint8_t counter_width = 0;  // kWidth32
  Be32 counter_masks0_9;           // 3 bits for each counter, after 2 reserved ones
  Be16 counter_masks10_14;         // after a reserved one
  std::uint8_t sample_mechanisms = 0;
  std::uint8_t sample_status = 0;  // the lower two bits
  Be64 option_mask;
  Be64 vendor_mask;
  Be32 sample_start;     // ticks
  Be32 sample_interval;  // ticks
  Be16 tag;              // the client's
  std::array<Be16, kSampleCounters> counter_select{};
  Be32 reserved;
  Be64 samples_only_option_mask;
};
static_assert(sizeof(PortSamplesControl) == 80 && offsetof(PortSamplesControl, option_mask) == 12 &&
              offsetof(PortSamplesControl, sample_start) == 28 &&
              offsetof(PortSamplesControl, counter_select) == 38 &&
              offsetof(PortSamplesControl, samples_only_option_mask) == 72);

inline constexpr std::uint8_t kWidth32 = 4;              // CounterWidth: 32 bits
inline constexpr std::uint32_t kAllMechanisms = ~0u;     // as attribute modifier
inline constexpr unsigned kMandatoryAndOptional = 0b11;  // of a counter's mask

// CounterSelect: 1 to 5, and from here on the optional ones, whose bit of OptionMask is one more
// than what they are above it.
inline constexpr std::uint16_t kFirstOptionalSelect = 0x4000;
inline constexpr std::uint16_t kSelectLocalPhysicalErrors = 0x4005;  // PortRcvErrorDetails
inline constexpr std::uint16_t kSelectBufferOverruns = 0x4007;
inline constexpr std::uint16_t kSelectInactiveDiscards = 0x400b;  // PortXmitDiscardDetails
inline constexpr std::uint16_t kSelectHeadOfQueueDiscards = 0x400e;

struct PortSamplesResult {  // 16.1.3.3
  Be16 tag;
  std::uint8_t reserved = 0;
  std::uint8_t sample_status = 0;
  std::array<Be32, kSampleCounters> counters{};
};
static_assert(sizeof(PortSamplesResult) == 64 && offsetof(PortSamplesResult, counters) == 4);

struct PortSamplesResultExtended {  // 16.1.4
  Be16 tag;
  std::uint8_t reserved = 0;
  std::uint8_t sample_status = 0;
  Be32 extended_width;  // kExtendedWidth64
  std::array<Be64, kSampleCounters> counters{};
};
static_assert(sizeof(PortSamplesResultExtended) == 128 &&
              offsetof(PortSamplesResultExtended, counters) == 8);

inline constexpr std::uint32_t kExtendedWidth64 = 2u << 30;

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
