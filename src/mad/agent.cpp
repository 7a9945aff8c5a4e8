// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/agent.h"

#include "mad/smp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ib::mad {
namespace {

// A response is the request with other data.
struct Answer {
  std::uint16_t status = mad_status::kOk;
  std::array<std::uint8_t, kSmpDataSize> data{};
};

template <class Attribute>
Answer with(const Attribute& attribute) {
  static_assert(sizeof(Attribute) <= kSmpDataSize && alignof(Attribute) == 1);
  Answer result;
  std::memcpy(result.data.data(), &attribute, sizeof attribute);
  return result;
}

Answer refuse(std::uint16_t status) {
  return {status, {}};
}

Answer node_description(const NodeFacts& node) {
  Answer result;
  std::copy_n(node.description.begin(), std::min(node.description.size(), result.data.size()),
              result.data.begin());
  return result;
}

Answer node_info(const NodeFacts& node, const PortFacts& port) {
  NodeInfo info;
  info.node_type = static_cast<std::uint8_t>(node.type);
  info.num_ports = node.ports;
  info.system_image_guid = node.system_image_guid;
  info.node_guid = node.guid;
  info.port_guid = port.guid;
  info.partition_cap = node.partition_cap;
  info.device_id = node.device_id;
  info.revision = node.revision;
  info.local_port = port.number;
  info.vendor_id = node.vendor_id;
  return with(info);
}

constexpr std::uint8_t nibbles(unsigned high, unsigned low) {
  return static_cast<std::uint8_t>((high & 15) << 4 | (low & 15));
}

// Speeds from FDR on (16, 32 ...) are counted in a field of their own, beside QDR in the old one.
struct Speeds {
  unsigned old_one = 0;
  unsigned extended = 0;
};
Speeds split(std::uint8_t verbs_speed) {
  constexpr unsigned kQdr = 4;
  if (verbs_speed >= 16) return {kQdr, verbs_speed / 16u};
  return {verbs_speed, 0};
}

Answer port_info(const PortFacts& port) {
  const Speeds active = split(port.speed);
  constexpr unsigned kDownDefaultPolling = 2;
  PortInfo info;
  info.gid_prefix = port.subnet_prefix;
  info.lid = port.lid;
  info.master_sm_lid = port.sm_lid;
  info.capability_mask = port.capability_mask;
  info.local_port = port.number;
  info.link_width_enabled = info.link_width_active = port.width;
  // And all narrower ones [IBA1 14.2.5.6].
  info.link_width_supported = static_cast<std::uint8_t>(port.width * 2u - 1);
  info.speed_supported_state = nibbles(active.old_one * 2 - 1, static_cast<unsigned>(port.state));
  info.physical_down_default = nibbles(port.physical_state, kDownDefaultPolling);
  info.m_key_protect_lmc = port.lmc & 7;
  info.speed_active_enabled = nibbles(active.old_one, active.old_one * 2 - 1);
  info.mtu_sm_sl = nibbles(static_cast<unsigned>(port.active_mtu), port.sm_sl);
  info.vl_cap_init_type = nibbles(port.virtual_lanes, 0);
  info.init_reply_mtu_cap = nibbles(0, static_cast<unsigned>(port.max_mtu));
  info.operational_vls = nibbles(port.virtual_lanes, 0);
  info.guid_cap = port.gids;
  info.reregister_timeout = port.subnet_timeout & 31;
  info.speed_ext_active_supported = nibbles(active.extended, active.extended);
  info.speed_ext_enabled = static_cast<std::uint8_t>(active.extended);
  return with(info);
}

Answer guid_info(const PortFacts& port, std::uint32_t block) {
  if (block * kGuidsPerBlock >= port.gids) return refuse(mad_status::kBadField);
  std::array<Be64, kGuidsPerBlock> guids{};
  if (block == 0) guids[0] = port.guid;
  return with(guids);
}

// The modifier's upper half is a switch's port.
Answer pkey_table(const PortFacts& port, std::uint32_t block) {
  const std::size_t first = std::size_t{block & 0xffff} * kPkeysPerBlock;
  if (block >> 16 != 0 || first >= port.pkeys.size()) return refuse(mad_status::kBadField);
  const auto part = port.pkeys.subspan(first);
  std::array<Be16, kPkeysPerBlock> pkeys{};
  std::copy_n(part.begin(), std::min(part.size(), kPkeysPerBlock), pkeys.begin());
  return with(pkeys);
}

Answer get(const NodeFacts& node, const PortFacts& port, std::uint16_t attribute,
           std::uint32_t modifier) {
  switch (attribute) {
    case smp_attribute::kNodeDescription: return node_description(node);
    case smp_attribute::kNodeInfo: return node_info(node, port);
    case smp_attribute::kGuidInfo: return guid_info(port, modifier);
    case smp_attribute::kPortInfo:  // 0 is the port that it came to
      if (modifier != 0 && modifier != port.number) return refuse(mad_status::kBadField);
      return port_info(port);
    case smp_attribute::kPkeyTable: return pkey_table(port, modifier);
    default: return refuse(mad_status::kAttributeNotSupported);
  }
}

bool is_smp(const MadHeader& header) {
  return header.mgmt_class == mgmt_class::kSubnLid ||
         header.mgmt_class == mgmt_class::kSubnDirected;
}

Answer answer_to(const NodeFacts& node, const PortFacts& port, const MadHeader& header) {
  if (header.base_version != kBaseVersion || !is_smp(header) ||
      header.class_version != kClassVersion) {
    return refuse(mad_status::kBadVersion);
  }
  if (header.method == method::kSet) return refuse(mad_status::kAttributeNotSupported);
  if (header.method != method::kGet) return refuse(mad_status::kMethodNotSupported);
  return get(node, port, header.attribute, header.modifier);
}

}  // namespace

Status answer(const NodeFacts& node, const PortFacts& port, const Mad& request, Mad& response,
              std::string& reason) {
  Smp smp = std::bit_cast<Smp>(request);
  const bool directed = smp.header.mgmt_class == mgmt_class::kSubnDirected;
  if ((smp.header.method & method::kResponseBit) != 0) {
    reason = fmt::format("the MAD is a response (method {}), an agent answers requests",
                         smp.header.method);
    return Status::InvalidParameter;
  }
  // Hop pointer and hop count: 0 of 0, or the end of the hops [14.2.2.2].
  const std::uint16_t hops = smp.header.class_specific;
  if (directed && hops != 0 && hops >> 8 != (hops & 0xff) + 1) {
    reason = "the directed route of the MAD has hops: it is not for this port";
    return Status::InvalidParameter;
  }
  const Answer said = answer_to(node, port, smp.header);
  smp.header.method = method::kGetResp;
  smp.header.status = static_cast<std::uint16_t>(said.status | (directed ? kDirectionBit : 0));
  smp.data = said.data;
  response = std::bit_cast<Mad>(smp);
  return Status::Ok;
}

}  // namespace ib::mad
