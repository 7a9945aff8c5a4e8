// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fields of one PortInfo: what the port has, and what the manager wants it to have. setup.cpp
// sends those that differ.
#include "sm/sweep/port_setup.h"

#include <algorithm>

namespace ib::sm {
namespace {

using verbs::PortState;

constexpr std::uint8_t kReregisterBit = 0x80;
constexpr std::uint8_t kEnforcesBothWays = 0x0c;  // of operational_vls

// A Set that keeps all as it is: states and masks of 0 change nothing.
mad::PortInfo unchanged(const mad::PortInfo& info) {
  mad::PortInfo set = info;
  set.link_width_enabled = 0;
  set.speed_supported_state &= 0xf0;
  set.physical_down_default &= 0x0f;
  set.speed_active_enabled &= 0xf0;
  set.speed_ext_enabled = 0;
  set.reregister_timeout &= 31;
  return set;
}

void put_state(mad::PortInfo& set, PortState state) {
  set.speed_supported_state =
      static_cast<std::uint8_t>((set.speed_supported_state & 0xf0) | static_cast<unsigned>(state));
}

// Both ends of a link have the smaller of two values.
struct LinkValues {
  std::uint8_t mtu = 0;
  std::uint8_t lanes = 0;
};
LinkValues link_values(const Subnet& subnet, const Port& port) {
  const auto cap = [](const mad::PortInfo& info) {
    return LinkValues{static_cast<std::uint8_t>(info.init_reply_mtu_cap & 15),
                      static_cast<std::uint8_t>(info.vl_cap_init_type >> 4)};
  };
  LinkValues values = cap(port.info);
  if (port.peer == kNone || !subnet.port(port.peer).is_known) return values;
  const LinkValues other = cap(subnet.port(port.peer).info);
  return {std::min(values.mtu, other.mtu), std::min(values.lanes, other.lanes)};
}

void put_link(mad::PortInfo& set, const LinkValues& values) {
  set.mtu_sm_sl = static_cast<std::uint8_t>(values.mtu << 4 | (set.mtu_sm_sl & 15));
  set.operational_vls = static_cast<std::uint8_t>(values.lanes << 4 | (set.operational_vls & 15));
}

bool has_same_addresses(const mad::PortInfo& a, const mad::PortInfo& b) {
  return a.m_key == b.m_key && a.gid_prefix == b.gid_prefix && a.lid == b.lid &&
         a.master_sm_lid == b.master_sm_lid && a.m_key_lease_period == b.m_key_lease_period &&
         a.m_key_protect_lmc == b.m_key_protect_lmc && a.mtu_sm_sl == b.mtu_sm_sl &&
         a.operational_vls == b.operational_vls &&
         ((a.reregister_timeout ^ b.reregister_timeout) & 31) == 0;
}

bool is_in_init(const Port& port) {
  return state_of(port.info) == PortState::Init;
}

}  // namespace

std::uint64_t key_for(const Subnet& subnet, const Settings& settings, std::uint32_t port) {
  if (port == kNone) return settings.m_key;
  const Port& keeper = subnet.keeper_of(subnet.port(port));
  const std::uint64_t key = keeper.is_known ? std::uint64_t{keeper.info.m_key} : 0;
  return key != 0 ? key : settings.m_key;
}

bool has_hidden_key(const Port& keeper) {
  return keeper.info.m_key == 0 && keeper.info.m_key_protect_lmc >> 6 != 0;
}

std::optional<mad::PortInfo> end_port_set(const Subnet& subnet, const Settings& settings,
                                          const Port& port, bool reregister) {
  mad::PortInfo set = unchanged(port.info);
  set.m_key = settings.m_key;
  set.gid_prefix = settings.subnet_prefix;
  set.lid = port.lid;
  set.master_sm_lid = subnet.port(subnet.own_port()).lid;
  set.m_key_lease_period = settings.m_key_lease;
  const unsigned protect = settings.m_key != 0 ? settings.m_key_protect : 0u;
  set.m_key_protect_lmc = static_cast<std::uint8_t>(protect << 6 | port.lmc);
  set.mtu_sm_sl &= 0xf0;
  set.reregister_timeout = settings.subnet_timeout;
  const bool is_adapter = !subnet.node_of(port).is_switch();
  if (is_adapter) put_link(set, link_values(subnet, port));
  const bool is_armed_now = is_adapter && port.peer != kNone && is_in_init(port);
  if (is_armed_now) put_state(set, PortState::Armed);
  const bool is_moved =
      set.lid != port.info.lid || set.master_sm_lid != port.info.master_sm_lid || reregister;
  if (has_same_addresses(set, port.info) && !is_armed_now && !(is_adapter && reregister)) {
    return std::nullopt;
  }
  if (is_adapter && is_moved) set.reregister_timeout |= kReregisterBit;
  return set;
}

std::optional<mad::PortInfo> link_set(const Subnet& subnet, const Port& port,
                                      std::optional<bool> enforces) {
  mad::PortInfo set = unchanged(port.info);
  put_link(set, link_values(subnet, port));
  if (enforces) {
    const std::uint8_t enforcement = *enforces ? kEnforcesBothWays : std::uint8_t{0};
    set.operational_vls = static_cast<std::uint8_t>((set.operational_vls & 0xf3) | enforcement);
  }
  if (is_in_init(port)) {
    put_state(set, PortState::Armed);
    return set;
  }
  const bool is_same =
      set.mtu_sm_sl == port.info.mtu_sm_sl && set.operational_vls == port.info.operational_vls;
  if (is_same) return std::nullopt;
  return set;
}

std::optional<mad::PortInfo> active_set(const Port& port) {
  if (state_of(port.info) != PortState::Armed) return std::nullopt;
  mad::PortInfo set = unchanged(port.info);
  put_state(set, PortState::Active);
  return set;
}

}  // namespace ib::sm
