// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Set: which values an agent accepts [IBA1 14.2.5, 14.3.5]. One that is out of range refuses the
// whole SMP, so that nothing of it is done.
#include "mad/attributes.h"
#include "mad/link_ability.h"

#include <bit>
#include <cstring>

namespace ib::mad {
namespace {

using verbs::PortState;

constexpr std::uint16_t kLastUnicast = 0xbfff;

template <class T>
T read(const SmpData& data) {
  T value;
  std::memcpy(static_cast<void*>(&value), data.data(), sizeof value);
  return value;
}

// PortState of a Set [14.2.5.6]: 0 changes nothing, Down retrains, Armed and Active go one step on.
bool may_become(PortState now, unsigned wanted) {
  switch (static_cast<PortState>(wanted)) {
    case PortState::Nop:
    case PortState::Down: return true;
    case PortState::Armed: return now == PortState::Init || now == PortState::Armed;
    case PortState::Active: return now == PortState::Armed || now == PortState::Active;
    case PortState::Init:
    case PortState::ActiveDefer: break;
  }
  return false;
}

// A mask of what is enabled: some of what is supported, or all (the highest value), or no change.
bool is_enabled_mask(unsigned wanted, unsigned supported, unsigned all) {
  return wanted == 0 || wanted == all || (wanted & ~supported) == 0;
}

bool is_extended_mask(unsigned wanted, unsigned supported) {
  return is_enabled_mask(wanted, supported, 31) || wanted == kNoExtendedSpeed;
}

// The states of a Set: no change, Sleep, Polling, Disabled; beside a change of
// PortState other than Down only the first.
bool is_physical(unsigned wanted, unsigned state) {
  return wanted <= 3 && (wanted == 0 || state <= 1);
}

bool is_good_address(const PortInfo& info) {
  const unsigned lmc = info.m_key_protect_lmc & 7;
  const std::uint16_t lid = info.lid;
  const std::uint16_t manager = info.master_sm_lid;
  const bool aligned = (lid & ((1u << lmc) - 1)) == 0;
  const bool fits = lid + (1u << lmc) - 1 <= kLastUnicast;
  return lid != 0 && aligned && fits && manager != 0 && manager <= kLastUnicast;
}

std::uint16_t check_port_info(const AgentView& element, std::uint8_t arrival,
                              std::uint32_t modifier, const SmpData& data) {
  const bool is_switch = element.forwarding().has_value();
  const std::uint32_t number = port_of_modifier(element, arrival, modifier);
  const auto port = element.port(number);
  if ((modifier & 0x7fff'ff00) != 0 || !port || (!is_switch && number != arrival)) {
    return mad_status::kBadField;
  }
  const auto info = read<PortInfo>(data);
  const LinkAbility able = ability_of({port->best_width, port->best_speed});
  const bool is_outer = is_switch && number != 0;
  const unsigned state = info.speed_supported_state & 15;
  const bool good = (is_outer || is_good_address(info)) &&
                    (is_switch && !is_outer ? true : may_become(port->state, state)) &&
                    is_physical(info.physical_down_default >> 4, state) &&
                    (info.physical_down_default & 15) <= 2 &&
                    is_enabled_mask(info.link_width_enabled, able.width, 0xff) &&
                    is_enabled_mask(info.speed_active_enabled & 15, able.speed, 15) &&
                    is_extended_mask(info.speed_ext_enabled & 31, able.speed_ext) &&
                    (info.mtu_sm_sl >> 4) <= static_cast<unsigned>(port->max_mtu) &&
                    (info.operational_vls >> 4) <= port->virtual_lanes;
  return good ? mad_status::kOk : mad_status::kBadField;
}

std::uint16_t check_switch_info(const SwitchFacts& facts, std::uint32_t modifier,
                                const SmpData& data) {
  const auto info = read<SwitchInfo>(data);
  const bool good = modifier == 0 && info.linear_top < facts.linear_cap;
  return good ? mad_status::kOk : mad_status::kBadField;
}

}  // namespace

std::uint16_t check_set(const AgentView& element, std::uint8_t arrival, std::uint16_t attribute,
                        std::uint32_t modifier, const SmpData& data) {
  switch (attribute) {
    case smp_attribute::kPortInfo: return check_port_info(element, arrival, modifier, data);
    case smp_attribute::kSwitchInfo: {
      const auto forwarding = element.forwarding();
      if (!forwarding) return mad_status::kAttributeNotSupported;
      return check_switch_info(*forwarding, modifier, data);
    }
    case smp_attribute::kGuidInfo:
    case smp_attribute::kPkeyTable:
    case smp_attribute::kSlToVlTable:
    case smp_attribute::kVlArbitration:
    case smp_attribute::kLinearForwarding:
    case smp_attribute::kMulticastForwarding:
    case smp_attribute::kLedInfo:
      // All of these can be written where they can be read.
      return get_attribute(element, arrival, attribute, modifier).status;
    default: return mad_status::kAttributeNotSupported;
  }
}

}  // namespace ib::mad
