// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One Set at one element: its fields go to the port, the switch or the tables that they are about.
// mad/set_rules.cpp has let it pass; the answer is made from what is then (agent.cpp).
#include "fabric/management/apply_set.h"

#include "fabric/management/element_view.h"
#include "fabric/subnet_setup.h"
#include "mad/attributes.h"
#include "verbs/limits.h"

#include <algorithm>
#include <cstring>

namespace ib::fabric {
namespace {

using mad::PortInfo;
using mad::SmpData;
using verbs::PortState;

template <class T>
T read(const SmpData& data) {
  T value;
  std::memcpy(static_cast<void*>(&value), data.data(), sizeof value);
  return value;
}

// All at once, at one element.
class Setter {
 public:
  Setter(Fabric& fabric, const Port& at, const mad::Smp& smp, PortChanges& changes)
      : fabric_(fabric),
        graph_(fabric.graph()),
        element_(graph_.element_of(at)),
        arrival_(static_cast<std::uint8_t>(at.number)),
        modifier_(smp.header.modifier),
        data_(smp.data),
        changes_(changes) {}

  void port_info();
  void switch_info();
  void guids();
  void pkeys();
  void sl_to_vl();
  void arbitration();
  void linear();
  void multicast();
  void led() { graph_.element_of(port(arrival_)).led_is_on = (data_[0] & 0x80) != 0; }

 private:
  Port& port(std::uint32_t number) { return *graph_.port_of(element_, number); }
  void note(const Port& port, std::uint32_t what) {
    changes_.push_back({graph_.index_of(port), what, PortState::Nop});
  }
  void end_port(Port& port, const PortInfo& info);
  void link(Port& port, const PortInfo& info);
  void state(Port& port, const PortInfo& info);
  void prefix(Port& port, std::uint64_t prefix);

  Fabric& fabric_;
  Graph& graph_;
  const Element& element_;
  std::uint8_t arrival_;
  std::uint32_t modifier_;
  const SmpData& data_;
  PortChanges& changes_;
};

void Setter::port_info() {
  const auto info = read<PortInfo>(data_);
  const ElementView view(graph_, element_);
  Port& target = port(mad::port_of_modifier(view, arrival_, modifier_));
  if (!element_.is_switch() || target.number == 0) end_port(target, info);
  link(target, info);
  if (!element_.is_switch() || target.number != 0) state(target, info);
}

// The fields that only ports with an address have.
void Setter::end_port(Port& port, const PortInfo& info) {
  mad::PortSettings& settings = port.settings;
  settings.m_key = info.m_key;
  settings.m_key_protect = info.m_key_protect_lmc >> 6;
  settings.m_key_lease = info.m_key_lease_period;
  if (info.gid_prefix != 0 && info.gid_prefix != port.gid_prefix) prefix(port, info.gid_prefix);
  const auto lmc = static_cast<std::uint8_t>(info.m_key_protect_lmc & 7);
  if (port.lid != info.lid || port.lmc != lmc) {
    graph_.take_lid(port, info.lid, lmc);
    note(port, change::kLid);
  }
  const auto sl = static_cast<std::uint8_t>(info.mtu_sm_sl & 15);
  if (port.sm_lid != info.master_sm_lid || port.sm_sl != sl) {
    port.sm_lid = info.master_sm_lid;
    port.sm_sl = sl;
    note(port, change::kManager);
  }
  port.subnet_timeout = info.reregister_timeout & 31;
  constexpr unsigned kClientReregister = 0x80;
  if ((info.reregister_timeout & kClientReregister) != 0) note(port, change::kReregister);
}

void Setter::prefix(Port& port, std::uint64_t prefix) {
  port.gid_prefix = prefix;
  for (std::size_t i = 0; i < port.gids.size(); ++i) {
    GidEntry entry = port.gids[i];
    if (verbs::is_zero(entry.gid)) continue;
    const Be64 upper = prefix;
    std::memcpy(entry.gid.data(), &upper, sizeof upper);
    (void)graph_.set_gid(port, i, std::move(entry));
  }
  note(port, change::kGids);
}

// A value of 0 changes nothing; the highest one of a mask stands for all that is supported.
void Setter::link(Port& port, const PortInfo& info) {
  mad::PortSettings& settings = port.settings;
  const auto enable = [](std::uint8_t& mask, unsigned wanted, unsigned all) {
    if (wanted != 0) mask = static_cast<std::uint8_t>(wanted == all ? 0 : wanted);
  };
  const mad::PortSettings before = settings;
  enable(settings.width_enabled, info.link_width_enabled, 0xff);
  enable(settings.speed_enabled, info.speed_active_enabled & 15, 15);
  enable(settings.speed_ext_enabled, info.speed_ext_enabled & 31, 31);
  // A link that is up keeps its rate until it trains again; one that is down tries at once.
  if (settings != before && port.physical_state == kPolling) train(fabric_, port, changes_);
  if ((info.physical_down_default & 15) != 0) {
    settings.down_default = info.physical_down_default & 15;
  }
  if ((info.operational_vls >> 4) != 0) settings.operational_vls = info.operational_vls >> 4;
  settings.enforcement = info.operational_vls & 15;
  if (settings.enforcement != before.enforcement ||
      settings.operational_vls != before.operational_vls) {
    graph_.mark_forwarding(element_);
  }
  settings.vl_high_limit = info.vl_high_limit;
  settings.vl_stall_hoq = info.vl_stall_hoq;
  settings.error_thresholds = info.error_thresholds;
  if (info.m_key_violations == 0) settings.m_key_violations = 0;
  if (info.p_key_violations == 0) settings.p_key_violations = 0;
  if (info.q_key_violations == 0) settings.q_key_violations = 0;
  const auto mtu = static_cast<verbs::Mtu>(info.mtu_sm_sl >> 4);
  if (info.mtu_sm_sl >> 4 != 0 && mtu != port.mtu) {
    port.mtu = mtu;
    graph_.mark_forwarding(element_);
    note(port, change::kOther);
  }
}

void Setter::state(Port& port, const PortInfo& info) {
  const auto wanted = static_cast<PortState>(info.speed_supported_state & 15);
  switch (info.physical_down_default >> 4) {
    case kSleeping:
    case kDisabled: return set_enabled(fabric_, port, false, changes_);
    case kPolling:
      if (port.physical_state == kDisabled) return set_enabled(fabric_, port, true, changes_);
      return retrain(fabric_, port, changes_);
    default: break;
  }
  if (wanted == PortState::Down) return retrain(fabric_, port, changes_);
  if (wanted != PortState::Nop) advance(fabric_, port, wanted, changes_);
}

void Setter::switch_info() {
  const auto info = read<mad::SwitchInfo>(data_);
  mad::SwitchFacts& facts = tables_to_set(fabric_, element_).facts;
  const bool is_other = facts.linear_top != info.linear_top ||
                        facts.multicast_primary != info.multicast_primary ||
                        facts.multicast_not_primary != info.multicast_not_primary;
  if (is_other) graph_.mark_forwarding(element_);
  facts.linear_top = info.linear_top;
  facts.default_port = info.default_port;
  facts.multicast_primary = info.multicast_primary;
  facts.multicast_not_primary = info.multicast_not_primary;
  facts.life_time = info.life_state_mapping >> 3;
  facts.multicast_top = info.multicast_top;
  if ((info.life_state_mapping & mad::kPortStateChange) != 0) facts.port_state_change = false;
}

// Entry 0 is read-only; a GUID that another port has is not taken [IBA1 14.2.5.5].
void Setter::guids() {
  Port& target = port(element_.is_switch() ? 0 : arrival_);
  const auto guids = read<std::array<Be64, mad::kGuidsPerBlock>>(data_);
  bool is_changed = false;
  for (std::size_t i = 0; i < guids.size(); ++i) {
    const std::size_t index = modifier_ * guids.size() + i;
    if (index == 0 || index >= verbs::limits::kGidTableLength) continue;
    const bool is_there = index < target.gids.size() && !verbs::is_zero(target.gids[index].gid);
    if (guids[i] == 0 && !is_there) continue;
    GidEntry entry;
    if (guids[i] != 0) entry.gid = verbs::make_gid(target.gid_prefix, guids[i]);
    is_changed |= graph_.set_gid(target, index, std::move(entry)) == Status::Ok;
  }
  if (is_changed) note(target, change::kGids);
}

void Setter::pkeys() {
  Port& target = port(element_.is_switch() ? modifier_ >> 16 : arrival_);
  const auto block = read<std::array<Be16, mad::kPkeysPerBlock>>(data_);
  const std::size_t first = std::size_t{modifier_ & 0xffff} * block.size();
  const std::size_t most = std::min<std::size_t>(first + block.size(), verbs::limits::kMaxPkeys);
  std::vector<std::uint16_t> table = target.pkeys;
  if (table.size() < most) table.resize(most);
  for (std::size_t i = first; i < most; ++i) table[i] = block[i - first];
  while (table.size() > 1 && table.back() == 0) table.pop_back();
  if (table == target.pkeys) return;
  target.pkeys = std::move(table);
  graph_.mark_forwarding(element_);
  note(target, change::kPkeys);
}

void Setter::sl_to_vl() {
  const std::uint32_t in = element_.is_switch() ? modifier_ >> 8 & 0xff : 0;
  const std::uint32_t out = element_.is_switch() ? modifier_ & 0xff : element_.first_number();
  const std::uint32_t index = graph_.index_of(port(out));
  if (graph_.tables().sl_to_vl(index, in) == data_) return;
  graph_.tables().set_sl_to_vl(index, in, data_);
  graph_.mark_forwarding(element_);
}

void Setter::arbitration() {
  const std::uint32_t number = element_.is_switch() ? modifier_ & 0xffff : arrival_;
  graph_.tables().set_arbitration(graph_.index_of(port(number)), modifier_ >> 16, data_);
}

void Setter::linear() {
  Switch& tables = tables_to_set(fabric_, element_);
  const std::size_t first = std::size_t{modifier_} * data_.size();
  bool is_other = false;
  for (std::size_t i = 0; i < data_.size(); ++i) {
    if (first + i < tables.linear.size() || data_[i] != kNoPort) {
      is_other |= first + i >= tables.linear.size() || tables.linear[first + i] != data_[i];
      tables.set_linear(first + i, data_[i]);
    }
  }
  if (is_other) graph_.mark_forwarding(element_);
}

void Setter::multicast() {
  Switch& tables = graph_.switch_of(element_);
  const auto masks = read<std::array<Be16, mad::kGroupsPerBlock>>(data_);
  const std::uint32_t block = modifier_ & 0x0fff'ffff;
  const std::uint32_t position = modifier_ >> 28;
  bool is_other = false;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const auto lid = static_cast<std::uint16_t>(mad::kFirstMulticastLid + block * masks.size() + i);
    const auto found = tables.groups.find(lid);
    if (masks[i] == 0 && found == tables.groups.end()) continue;
    PortMask& mask = tables.groups[lid];
    std::uint64_t& word = mask[position / 4];
    const unsigned shift = position % 4 * 16;
    const std::uint64_t before = word;
    word = (word & ~(std::uint64_t{0xffff} << shift)) | std::uint64_t{masks[i]} << shift;
    is_other |= word != before;
    if (mask == PortMask{}) tables.groups.erase(lid);
  }
  if (is_other) graph_.mark_forwarding(element_);
}

}  // namespace

void apply_set(Fabric& fabric, const Port& at, const mad::Smp& smp, PortChanges& changes) {
  Setter setter(fabric, at, smp, changes);
  switch (smp.header.attribute) {
    case mad::smp_attribute::kPortInfo: return setter.port_info();
    case mad::smp_attribute::kSwitchInfo: return setter.switch_info();
    case mad::smp_attribute::kGuidInfo: return setter.guids();
    case mad::smp_attribute::kPkeyTable: return setter.pkeys();
    case mad::smp_attribute::kSlToVlTable: return setter.sl_to_vl();
    case mad::smp_attribute::kVlArbitration: return setter.arbitration();
    case mad::smp_attribute::kLinearForwarding: return setter.linear();
    case mad::smp_attribute::kMulticastForwarding: return setter.multicast();
    case mad::smp_attribute::kLedInfo: return setter.led();
    default: IB_ASSERT(false);  // check_set() has let nothing else pass
  }
}

}  // namespace ib::fabric
