// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Subnet management packets [IBA1 14.2.1] and those of their attributes that every port has
// [IBA1 14.2.5]. Fields of less than a byte share one, high bits first.
#pragma once

#include "mad/header.h"

namespace ib::mad {

inline constexpr std::size_t kSmpDataSize = 64;

// With a LID [14.2.1.1]. A directed route [14.2.1.2] has hop counts in `class_specific`, LIDs in
// `reserved` and its paths behind `data`.
struct Smp {
  MadHeader header;
  Be64 m_key;
  std::array<std::uint8_t, 32> reserved{};
  std::array<std::uint8_t, kSmpDataSize> data{};
  std::array<std::uint8_t, 128> paths{};
};
static_assert(sizeof(Smp) == kMadSize && offsetof(Smp, data) == 64);

inline constexpr std::uint16_t kDirectionBit =
    0x8000;  // status of a directed route: on its way back

namespace smp_attribute {
inline constexpr std::uint16_t kNotice = 0x0002;
inline constexpr std::uint16_t kNodeDescription = 0x0010;
inline constexpr std::uint16_t kNodeInfo = 0x0011;
inline constexpr std::uint16_t kSwitchInfo = 0x0012;
inline constexpr std::uint16_t kGuidInfo = 0x0014;
inline constexpr std::uint16_t kPortInfo = 0x0015;
inline constexpr std::uint16_t kPkeyTable = 0x0016;
inline constexpr std::uint16_t kSlToVlTable = 0x0017;
inline constexpr std::uint16_t kVlArbitration = 0x0018;
inline constexpr std::uint16_t kLinearForwarding = 0x0019;
inline constexpr std::uint16_t kMulticastForwarding = 0x001b;
inline constexpr std::uint16_t kSmInfo = 0x0020;  // of a subnet manager, not of the agent
inline constexpr std::uint16_t kLedInfo = 0x0031;
}  // namespace smp_attribute

struct NodeInfo {  // [14.2.5.3]
  std::uint8_t base_version = kBaseVersion;
  std::uint8_t class_version = kClassVersion;
  std::uint8_t node_type = 0;
  std::uint8_t num_ports = 0;
  Be64 system_image_guid;
  Be64 node_guid;
  Be64 port_guid;
  Be16 partition_cap;
  Be16 device_id;
  Be32 revision;
  std::uint8_t local_port = 0;
  Be24 vendor_id;
};
static_assert(sizeof(NodeInfo) == 40);

struct PortInfo {  // [14.2.5.6]
  Be64 m_key;
  Be64 gid_prefix;
  Be16 lid;
  Be16 master_sm_lid;
  Be32 capability_mask;
  Be16 diag_code;
  Be16 m_key_lease_period;
  std::uint8_t local_port = 0;
  std::uint8_t link_width_enabled = 0;
  std::uint8_t link_width_supported = 0;
  std::uint8_t link_width_active = 0;
  std::uint8_t speed_supported_state = 0;  // LinkSpeedSupported, PortState
  std::uint8_t physical_down_default = 0;  // PortPhysicalState, LinkDownDefaultState
  std::uint8_t m_key_protect_lmc = 0;      // M_KeyProtectBits (2), -, LMC (3)
  std::uint8_t speed_active_enabled = 0;   // LinkSpeedActive, LinkSpeedEnabled
  std::uint8_t mtu_sm_sl = 0;              // NeighborMTU, MasterSMSL
  std::uint8_t vl_cap_init_type = 0;       // VLCap, InitType
  std::uint8_t vl_high_limit = 0;
  std::uint8_t vl_arb_high_cap = 0;
  std::uint8_t vl_arb_low_cap = 0;
  std::uint8_t init_reply_mtu_cap = 0;  // InitTypeReply, MTUCap
  std::uint8_t vl_stall_hoq = 0;
  std::uint8_t operational_vls = 0;  // OperationalVLs, enforcement and filters
  Be16 m_key_violations;
  Be16 p_key_violations;
  Be16 q_key_violations;
  std::uint8_t guid_cap = 0;
  std::uint8_t reregister_timeout = 0;  // ClientReregister, -, SubnetTimeOut (5)
  std::uint8_t response_time = 0;       // RespTimeValue (5)
  std::uint8_t error_thresholds = 0;
  Be16 max_credit_hint;
  Be32 link_round_trip;
  Be16 capability_mask2;
  std::uint8_t speed_ext_active_supported = 0;  // LinkSpeedExtActive, LinkSpeedExtSupported
  std::uint8_t speed_ext_enabled = 0;
};
static_assert(sizeof(PortInfo) == kSmpDataSize && offsetof(PortInfo, guid_cap) == 50);

struct SwitchInfo {  // [14.2.5.4]
  Be16 linear_cap;
  Be16 random_cap;
  Be16 multicast_cap;
  Be16 linear_top;
  std::uint8_t default_port = 0;
  std::uint8_t multicast_primary = 0;
  std::uint8_t multicast_not_primary = 0;
  std::uint8_t life_state_mapping = 0;  // LifeTimeValue (5), PortStateChange, OptimizedSLtoVL (2)
  Be16 lids_per_port;
  Be16 enforcement_cap;
  std::uint8_t enforcement = 0;  // in, out, raw in, raw out (capabilities), enhanced port 0
  std::uint8_t reserved = 0;
  Be16 multicast_top;
};
static_assert(sizeof(SwitchInfo) == 20);
inline constexpr std::uint8_t kPortStateChange = 1 << 2;  // written as 1, it becomes 0

inline constexpr std::size_t kGuidsPerBlock = 8;      // [14.2.5.5]
inline constexpr std::size_t kPkeysPerBlock = 32;     // [14.2.5.7]
inline constexpr std::size_t kLinearPerBlock = 64;    // LIDs [14.2.5.10]
inline constexpr std::size_t kGroupsPerBlock = 32;    // multicast LIDs [14.2.5.12]
inline constexpr std::size_t kPortsPerPosition = 16;  // ports of a block of these
inline constexpr std::uint16_t kFirstMulticastLid = 0xc000;

}  // namespace ib::mad
