// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet management agent of an element [IBA1 14.3]: turns an SMP into its answer.
//
// It answers Get, and checks Set: what that changes is carried out by the owner of the element,
// which then has the answer filled from what is. M_Keys are checked as [IBA1 14.2.4] says. SMInfo
// belongs to a subnet manager, and classes of other agents (performance, ...) get the status "class
// not supported".
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "mad/smp.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ib::mad {

enum class NodeType : std::uint8_t { ChannelAdapter = 1, Switch = 2 };  // [14.2.5.3]

// The element, as answers describe it.
struct NodeFacts {
  std::string_view description;
  NodeType type = NodeType::ChannelAdapter;
  std::uint8_t ports = 1;  // without port 0 of a switch
  std::uint64_t system_image_guid = 0;
  std::uint64_t guid = 0;
  std::uint16_t partition_cap = 1;  // P_Keys of the largest table
  std::uint32_t vendor_id = 0;
  std::uint16_t device_id = 0;
  std::uint32_t revision = 0;
};

// The settings of a port by Set(PortInfo), beside its addresses and state.
struct PortSettings {
  std::uint64_t m_key = 0;
  std::uint8_t m_key_protect = 0;  // bits [14.2.4]
  std::uint16_t m_key_lease = 0;   // seconds; 0: without an end
  std::uint8_t width_enabled = 0;  // 0: all that it can do
  std::uint8_t speed_enabled = 0;
  std::uint8_t speed_ext_enabled = 0;  // kNoExtendedSpeed: none
  std::uint8_t down_default = 2;       // Polling
  std::uint8_t operational_vls = 0;    // 0: as many as it has
  std::uint8_t vl_high_limit = 0;
  std::uint8_t vl_stall_hoq = 0;
  std::uint8_t enforcement = 0;  // P_Keys in, out, raw packets in, out
  std::uint8_t error_thresholds = 0;
  std::uint16_t m_key_violations = 0;
  std::uint16_t p_key_violations = 0;
  std::uint16_t q_key_violations = 0;
  bool operator==(const PortSettings&) const = default;
};

// The state of a port, of an HCA or of a switch, that answers are made from.
struct PortFacts {
  std::uint8_t number = 1;
  std::uint64_t guid = 0;  // of a switch: the same for all its ports
  std::uint64_t subnet_prefix = 0;
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t sm_sl = 0;
  verbs::PortState state = verbs::PortState::Down;
  std::uint8_t physical_state = 0;
  std::uint8_t width = 0;  // of the link, as verbs number them
  std::uint8_t speed = 0;
  std::uint8_t best_width = 0;  // of what the port can do
  std::uint8_t best_speed = 0;
  verbs::Mtu active_mtu = verbs::Mtu::B4096;
  verbs::Mtu max_mtu = verbs::Mtu::B4096;
  std::uint8_t virtual_lanes = 1;    // VLCap [14.2.5.6]: 1: VL0, 4: VL0 to VL7
  std::uint8_t arbitration_cap = 0;  // entries of each of its VL arbitration tables
  std::uint8_t subnet_timeout = 0;
  std::uint8_t gids = 0;  // entries of its GID table
  std::uint32_t capability_mask = 0;
  PortSettings settings;
  std::span<const std::uint16_t> pkeys;
};

// SwitchInfo [14.2.5.4].
struct SwitchFacts {
  std::uint16_t linear_cap = 0xc000;
  std::uint16_t linear_top = 0;
  std::uint16_t multicast_cap = 0x1000;
  std::uint16_t multicast_top = 0;
  std::uint8_t default_port = 0;
  std::uint8_t multicast_primary = 0;
  std::uint8_t multicast_not_primary = 0;
  std::uint8_t life_time = 0;
  bool port_state_change = false;
  std::uint16_t enforcement_cap = 0;  // P_Keys of a port other than 0
};

using SmpData = std::array<std::uint8_t, kSmpDataSize>;

// An element, as its agent reads it.
class AgentView {
 public:
  virtual ~AgentView() = default;

  virtual NodeFacts node() const = 0;
  // Returns nothing if it has no port of this number.
  virtual std::optional<PortFacts> port(std::uint32_t number) const = 0;
  // Returns nothing for a channel adapter.
  virtual std::optional<SwitchFacts> forwarding() const { return std::nullopt; }

  // Blocks of tables, as they are in an SMP. The numbers have been checked.
  virtual SmpData guids(std::uint32_t /*port*/, std::uint32_t /*block*/) const { return {}; }
  virtual SmpData linear(std::uint32_t /*block*/) const { return {}; }
  virtual SmpData multicast(std::uint32_t /*block*/, std::uint32_t /*position*/) const {
    return {};
  }
  virtual SmpData sl_to_vl(std::uint32_t /*in*/, std::uint32_t /*out*/) const { return {}; }
  virtual SmpData arbitration(std::uint32_t /*port*/, std::uint32_t /*part*/) const { return {}; }
  virtual SmpData led() const { return {}; }
};

enum class Verdict : std::uint8_t {
  Answered,  // the response is whole: of a Get, or a refusal
  Set,       // all of it can be done; the owner does it, then calls finish_set()
  Passed,    // to a subnet manager at this port: SMInfo, Trap
  Ignored,   // no answer: a response, a directed route that does not end here, TrapRepress
  BadKey,    // no answer: its M_Key is wrong [14.2.4.1]
};

struct Handled {
  Verdict verdict = Verdict::Ignored;
  std::string reason;  // of Ignored and BadKey, in words
};

// `arrival`: the number of the port by which the SMP came, 0 of a switch if it came from itself.
Handled answer(const AgentView& element, std::uint8_t arrival, const Mad& request, Mad& response);
// The response of a Set that was carried out: the attribute, as it is now.
void finish_set(const AgentView& element, std::uint8_t arrival, const Mad& request, Mad& response);
// The refusal with this status, of an SMP that nobody takes.
Mad refuse(const Mad& request, std::uint16_t status);

// The port that an SMP of PortInfo or of a table of a port is about: the modifier names it, or it
// is the one by which the SMP came.
std::uint32_t port_of_modifier(const AgentView& element, std::uint8_t arrival,
                               std::uint32_t modifier);

}  // namespace ib::mad
