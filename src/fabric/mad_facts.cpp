// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/mad_facts.h"

#include "fabric/port_attributes.h"
#include "verbs/limits.h"

#include <algorithm>

namespace ib::fabric {

namespace limits = verbs::limits;

mad::NodeFacts node_facts(const Graph& graph, const Element& element,
                          std::string_view description) {
  mad::NodeFacts facts;
  facts.description = description;
  facts.type = element.is_switch() ? mad::NodeType::Switch : mad::NodeType::ChannelAdapter;
  facts.ports = static_cast<std::uint8_t>(element.port_count);
  facts.system_image_guid = element.node_guid;
  facts.guid = element.node_guid;
  std::size_t pkeys = 0;
  for (const Port& port : graph.ports_of(element)) {
    pkeys = std::max(pkeys, port.pkeys.size());
  }
  facts.partition_cap = static_cast<std::uint16_t>(pkeys);
  facts.vendor_id = limits::kVendorId;
  facts.device_id = static_cast<std::uint16_t>(limits::kVendorPartId);
  facts.revision = limits::kHwVersion;
  return facts;
}

mad::PortFacts port_facts(const Port& port) {
  const verbs::control::PortAttr attr = port_attributes(port);
  mad::PortFacts facts;
  facts.number = static_cast<std::uint8_t>(port.number);
  facts.guid = port.guid;
  facts.subnet_prefix = kSubnetPrefix;
  facts.lid = attr.lid;
  facts.lmc = attr.lmc;
  facts.sm_lid = attr.sm_lid;
  facts.sm_sl = attr.sm_sl;
  facts.state = attr.state;
  facts.physical_state = attr.phys_state;
  facts.width = attr.active_width;
  facts.speed = attr.active_speed;
  facts.active_mtu = attr.active_mtu;
  facts.max_mtu = attr.max_mtu;
  facts.virtual_lanes = attr.max_vl_num;
  facts.subnet_timeout = attr.subnet_timeout;
  // Of the ports of a switch only port 0 has GIDs.
  facts.gids = port.gids.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(attr.gid_tbl_len);
  facts.capability_mask = attr.port_cap_flags;
  facts.pkeys = port.pkeys;
  return facts;
}

}  // namespace ib::fabric
