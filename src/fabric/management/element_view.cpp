// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The graph as facts and blocks of tables, of which mad/attributes.cpp makes the attributes of an
// answer.
#include "fabric/management/element_view.h"

#include "fabric/port_attributes.h"
#include "fabric/subnet_setup.h"
#include "verbs/limits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::fabric {
namespace {

namespace limits = verbs::limits;

template <class T>
mad::SmpData as_data(const T& block) {
  mad::SmpData data{};
  static_assert(sizeof block <= sizeof data);
  std::memcpy(data.data(), &block, sizeof block);
  return data;
}

}  // namespace

mad::NodeFacts ElementView::node() const {
  mad::NodeFacts facts;
  facts.description = element_.description;
  facts.type = element_.is_switch() ? mad::NodeType::Switch : mad::NodeType::ChannelAdapter;
  facts.ports = static_cast<std::uint8_t>(element_.port_count);
  facts.system_image_guid =
      element_.system_image_guid != 0 ? element_.system_image_guid : element_.node_guid;
  facts.guid = element_.node_guid;
  facts.partition_cap = limits::kMaxPkeys;
  facts.vendor_id = element_.vendor_id;
  facts.device_id = static_cast<std::uint16_t>(element_.device_id);
  facts.revision = limits::kHwVersion;
  return facts;
}

std::optional<mad::PortFacts> ElementView::port(std::uint32_t number) const {
  const Port* port = graph_.port_of(element_, number);
  if (port == nullptr) return std::nullopt;
  const verbs::control::PortAttr attr = port_attributes(*port);
  mad::PortFacts facts;
  facts.number = static_cast<std::uint8_t>(port->number);
  facts.guid = port->guid;
  facts.subnet_prefix = port->gid_prefix;
  facts.lid = attr.lid;
  facts.lmc = attr.lmc;
  facts.sm_lid = attr.sm_lid;
  facts.sm_sl = attr.sm_sl;
  facts.state = attr.state;
  facts.physical_state = attr.phys_state;
  facts.width = attr.active_width;
  facts.speed = attr.active_speed;
  facts.best_width = port->best_width;
  facts.best_speed = port->best_speed;
  facts.active_mtu = attr.active_mtu;
  facts.max_mtu = attr.max_mtu;
  facts.virtual_lanes = attr.max_vl_num;
  facts.arbitration_cap = PortTables::kArbitrationEntries;
  facts.subnet_timeout = attr.subnet_timeout;
  // Of the ports of a switch only port 0 has GIDs.
  facts.gids = port->gids.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(attr.gid_tbl_len);
  facts.capability_mask = attr.port_cap_flags;
  facts.settings = port->settings;
  facts.pkeys = port->pkeys;
  return facts;
}

std::optional<mad::SwitchFacts> ElementView::forwarding() const {
  if (!element_.is_switch()) return std::nullopt;
  return graph_.switch_of(element_).facts;
}

mad::SmpData ElementView::guids(std::uint32_t number, std::uint32_t block) const {
  const Port& port = *graph_.port_of(element_, element_.is_switch() ? 0 : number);
  std::array<Be64, mad::kGuidsPerBlock> guids{};
  for (std::size_t i = 0; i < guids.size(); ++i) {
    const std::size_t index = block * guids.size() + i;
    if (index >= port.gids.size()) break;
    std::memcpy(&guids[i], port.gids[index].gid.data() + sizeof(Be64), sizeof(Be64));
  }
  return as_data(guids);
}

mad::SmpData ElementView::linear(std::uint32_t block) const {
  const Switch& tables = fresh_tables(graph_, element_);
  mad::SmpData data;
  data.fill(kNoPort);
  const std::size_t first = std::size_t{block} * data.size();
  if (first < tables.linear.size()) {
    std::copy_n(tables.linear.begin() + static_cast<std::ptrdiff_t>(first), data.size(),
                data.begin());
  }
  return data;
}

mad::SmpData ElementView::multicast(std::uint32_t block, std::uint32_t position) const {
  const Switch& tables = graph_.switch_of(element_);
  std::array<Be16, mad::kGroupsPerBlock> masks{};
  const auto first =
      static_cast<std::uint16_t>(mad::kFirstMulticastLid + block * mad::kGroupsPerBlock);
  for (auto group = tables.groups.lower_bound(first);
       group != tables.groups.end() && group->first - first < int{mad::kGroupsPerBlock}; ++group) {
    const std::uint64_t word = group->second[position / 4];
    masks[group->first - first] = static_cast<std::uint16_t>(word >> position % 4 * 16);
  }
  return as_data(masks);
}

std::uint32_t ElementView::index_of(std::uint32_t number) const {
  return element_.first_port + number - element_.first_number();
}

mad::SmpData ElementView::sl_to_vl(std::uint32_t in, std::uint32_t out) const {
  const std::uint32_t port = element_.is_switch() ? index_of(out) : element_.first_port;
  return graph_.tables().sl_to_vl(port, in);
}

mad::SmpData ElementView::arbitration(std::uint32_t port, std::uint32_t part) const {
  return graph_.tables().arbitration(index_of(port), part);
}

mad::SmpData ElementView::led() const {
  constexpr std::uint8_t kOn = 0x80;
  mad::SmpData data{};
  data[0] = element_.led_is_on ? kOn : std::uint8_t{0};
  return data;
}

}  // namespace ib::fabric
