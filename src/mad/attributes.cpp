// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Get: facts into attributes.
#include "mad/attributes.h"

#include "mad/link_ability.h"

#include <algorithm>
#include <cstring>

namespace ib::mad {
namespace {

template <class T>
Attribute with(const T& attribute) {
  static_assert(sizeof(T) <= kSmpDataSize && alignof(T) == 1);
  Attribute result;
  std::memcpy(result.data.data(), &attribute, sizeof attribute);
  return result;
}

Attribute bad_field() {
  return {mad_status::kBadField, {}};
}

Attribute node_description(const NodeFacts& node) {
  Attribute result;
  std::copy_n(node.description.begin(), std::min(node.description.size(), result.data.size()),
              result.data.begin());
  return result;
}

Attribute node_info(const NodeFacts& node, const PortFacts& port, std::uint8_t arrival) {
  NodeInfo info;
  info.node_type = static_cast<std::uint8_t>(node.type);
  info.num_ports = node.ports;
  info.system_image_guid = node.system_image_guid;
  info.node_guid = node.guid;
  info.port_guid = port.guid;
  info.partition_cap = node.partition_cap;
  info.device_id = node.device_id;
  info.revision = node.revision;
  info.local_port = arrival;
  info.vendor_id = node.vendor_id;
  return with(info);
}

constexpr std::uint8_t nibbles(unsigned high, unsigned low) {
  return static_cast<std::uint8_t>((high & 15) << 4 | (low & 15));
}

unsigned or_else(unsigned value, unsigned otherwise) {
  return value != 0 ? value : otherwise;
}

Attribute port_info(const PortFacts& port, std::uint8_t arrival) {
  const SplitSpeed active = split_speed(port.speed);
  const LinkAbility able = ability_of({port.best_width, port.best_speed});
  const PortSettings& set = port.settings;
  PortInfo info;
  info.m_key = set.m_key;
  info.gid_prefix = port.subnet_prefix;
  info.lid = port.lid;
  info.master_sm_lid = port.sm_lid;
  info.capability_mask = port.capability_mask;
  info.m_key_lease_period = set.m_key_lease;
  info.local_port = arrival;
  info.link_width_enabled = static_cast<std::uint8_t>(or_else(set.width_enabled, able.width));
  info.link_width_active = port.width;
  info.link_width_supported = able.width;
  info.speed_supported_state = nibbles(able.speed, static_cast<unsigned>(port.state));
  info.physical_down_default = nibbles(port.physical_state, set.down_default);
  info.m_key_protect_lmc = static_cast<std::uint8_t>(set.m_key_protect << 6 | (port.lmc & 7));
  info.speed_active_enabled = nibbles(active.old_one, or_else(set.speed_enabled, able.speed));
  info.mtu_sm_sl = nibbles(static_cast<unsigned>(port.active_mtu), port.sm_sl);
  info.vl_cap_init_type = nibbles(port.virtual_lanes, 0);
  info.vl_high_limit = set.vl_high_limit;
  info.vl_arb_high_cap = info.vl_arb_low_cap = port.arbitration_cap;
  info.init_reply_mtu_cap = nibbles(0, static_cast<unsigned>(port.max_mtu));
  info.vl_stall_hoq = set.vl_stall_hoq;
  info.operational_vls = nibbles(or_else(set.operational_vls, port.virtual_lanes), set.enforcement);
  info.m_key_violations = set.m_key_violations;
  info.p_key_violations = set.p_key_violations;
  info.q_key_violations = set.q_key_violations;
  info.guid_cap = port.gids;
  info.reregister_timeout = port.subnet_timeout & 31;
  info.error_thresholds = set.error_thresholds;
  info.speed_ext_active_supported = nibbles(active.extended, able.speed_ext);
  info.speed_ext_enabled =
      static_cast<std::uint8_t>(or_else(set.speed_ext_enabled, able.speed_ext));
  return with(info);
}

Attribute switch_info(const SwitchFacts& facts) {
  SwitchInfo info;
  info.linear_cap = facts.linear_cap;
  info.multicast_cap = facts.multicast_cap;
  info.linear_top = facts.linear_top;
  info.default_port = facts.default_port;
  info.multicast_primary = facts.multicast_primary;
  info.multicast_not_primary = facts.multicast_not_primary;
  info.life_state_mapping = static_cast<std::uint8_t>(
      facts.life_time << 3 | (facts.port_state_change ? kPortStateChange : 0));
  info.enforcement_cap = facts.enforcement_cap;
  constexpr std::uint8_t kEnforcesBothWays = 0xc0;
  info.enforcement = facts.enforcement_cap != 0 ? kEnforcesBothWays : std::uint8_t{0};
  info.multicast_top = facts.multicast_top;
  return with(info);
}

Attribute guid_info(const AgentView& element, const PortFacts& port, std::uint32_t block) {
  if (block >= port.gids / kGuidsPerBlock + (port.gids % kGuidsPerBlock != 0 ? 1 : 0)) {
    return bad_field();
  }
  return {mad_status::kOk, element.guids(port.number, block)};
}

Attribute pkey_table(const PortFacts& port, std::uint32_t block, std::size_t capacity) {
  const std::size_t first = std::size_t{block} * kPkeysPerBlock;
  if (first >= std::max(port.pkeys.size(), capacity)) return bad_field();
  std::array<Be16, kPkeysPerBlock> pkeys{};
  if (first < port.pkeys.size()) {
    const auto part = port.pkeys.subspan(first);
    std::copy_n(part.begin(), std::min(part.size(), kPkeysPerBlock), pkeys.begin());
  }
  return with(pkeys);
}

// The modifier's upper half is a switch's port. Of a channel adapter it is reserved: 0, or, as
// ibdiagnet has it, the port by which the SMP comes.
Attribute pkeys_of(const AgentView& element, std::uint8_t arrival, std::uint32_t modifier) {
  const auto forwarding = element.forwarding();
  const std::uint32_t number = modifier >> 16;
  if (!forwarding && number != 0 && number != arrival) return bad_field();
  const auto port = element.port(forwarding ? number : arrival);
  if (!port) return bad_field();
  const bool is_outer = forwarding && number != 0;
  return pkey_table(*port, modifier & 0xffff, is_outer ? forwarding->enforcement_cap : 0);
}

Attribute sl_to_vl(const AgentView& element, std::uint32_t modifier) {
  if (!element.forwarding()) return {mad_status::kOk, element.sl_to_vl(0, 0)};
  const std::uint32_t in = modifier >> 8 & 0xff;
  const std::uint32_t out = modifier & 0xff;
  if (modifier >> 16 != 0 || !element.port(in) || !element.port(out)) return bad_field();
  return {mad_status::kOk, element.sl_to_vl(in, out)};
}

// The modifier: which quarter of the tables (1 to 4: low, low, high, high), and a switch's port.
Attribute arbitration(const AgentView& element, std::uint8_t arrival, std::uint32_t modifier) {
  const std::uint32_t part = modifier >> 16;
  const std::uint32_t number = element.forwarding() ? modifier & 0xffff : arrival;
  if (part < 1 || part > 4 || !element.port(number)) return bad_field();
  return {mad_status::kOk, element.arbitration(number, part)};
}

Attribute linear(const AgentView& element, std::uint32_t block) {
  const auto forwarding = element.forwarding();
  if (!forwarding) return {mad_status::kAttributeNotSupported, {}};
  if (std::uint64_t{block} * kLinearPerBlock >= forwarding->linear_cap) return bad_field();
  return {mad_status::kOk, element.linear(block)};
}

// The modifier: the block of groups, and in the upper four bits the 16 ports.
Attribute multicast(const AgentView& element, std::uint32_t modifier) {
  const auto forwarding = element.forwarding();
  if (!forwarding) return {mad_status::kAttributeNotSupported, {}};
  const std::uint32_t block = modifier & 0x0fff'ffff;
  const std::uint32_t position = modifier >> 28;
  if (block * kGroupsPerBlock >= forwarding->multicast_cap ||
      position * kPortsPerPosition > element.node().ports) {
    return bad_field();
  }
  return {mad_status::kOk, element.multicast(block, position)};
}

}  // namespace

std::uint32_t port_of_modifier(const AgentView& element, std::uint8_t arrival,
                               std::uint32_t modifier) {
  const std::uint32_t number = modifier & 0xff;
  return number != 0 || element.forwarding() ? number : arrival;
}

Attribute get_attribute(const AgentView& element, std::uint8_t arrival, std::uint16_t attribute,
                        std::uint32_t modifier) {
  const auto here = element.port(arrival);
  if (!here) return bad_field();
  switch (attribute) {
    case smp_attribute::kNodeDescription: return node_description(element.node());
    case smp_attribute::kNodeInfo: return node_info(element.node(), *here, arrival);
    case smp_attribute::kSwitchInfo: {
      const auto forwarding = element.forwarding();
      if (!forwarding) return {mad_status::kAttributeNotSupported, {}};
      return switch_info(*forwarding);
    }
    case smp_attribute::kGuidInfo: {
      // Of a switch it is port 0 that has GUIDs.
      const auto port = element.forwarding() ? element.port(0) : here;
      return port ? guid_info(element, *port, modifier) : bad_field();
    }
    case smp_attribute::kPortInfo: {
      const std::uint32_t number = port_of_modifier(element, arrival, modifier);
      const auto port = element.port(number);
      const bool is_here = element.forwarding() || number == arrival;
      // Bit 31: the manager is one that reads LinkSpeedExt [IBA1 14.2.5.6].
      if ((modifier & 0x7fff'ff00) != 0 || !port || !is_here) return bad_field();
      return port_info(*port, arrival);
    }
    case smp_attribute::kPkeyTable: return pkeys_of(element, arrival, modifier);
    case smp_attribute::kSlToVlTable: return sl_to_vl(element, modifier);
    case smp_attribute::kVlArbitration: return arbitration(element, arrival, modifier);
    case smp_attribute::kLinearForwarding: return linear(element, modifier);
    case smp_attribute::kMulticastForwarding: return multicast(element, modifier);
    case smp_attribute::kLedInfo: return {mad_status::kOk, element.led()};
    default: return {mad_status::kAttributeNotSupported, {}};
  }
}

}  // namespace ib::mad
