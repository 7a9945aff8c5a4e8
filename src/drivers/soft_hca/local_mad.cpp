// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A MAD to the agents of the own port [IBA1 13.5.2] is answered in the call that brought it,
// without a packet, a queue pair or a thread.
#include "drivers/soft_hca/handlers.h"
#include "mad/agent.h"

#include <bit>

namespace ib::drivers {
namespace {

mad::NodeFacts node_facts(const fabric::Hca& hca, std::string_view description) {
  const control::CaAttr ca = ca_attributes(hca);
  mad::NodeFacts facts;
  facts.description = description;
  facts.ports = static_cast<std::uint8_t>(ca.port_count);
  facts.system_image_guid = ca.sys_image_guid;
  facts.guid = ca.node_guid;
  facts.partition_cap = static_cast<std::uint16_t>(ca.max_pkeys);
  facts.vendor_id = ca.vendor_id;
  facts.device_id = static_cast<std::uint16_t>(ca.vendor_part_id);
  facts.revision = ca.hw_ver;
  return facts;
}

mad::PortFacts port_facts(const fabric::Port& port) {
  const control::PortAttr attr = port_attributes(port);
  mad::PortFacts facts;
  facts.number = static_cast<std::uint8_t>(port.number);
  facts.guid = port.guid;
  facts.subnet_prefix = fabric::kSubnetPrefix;
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
  facts.gids = static_cast<std::uint8_t>(attr.gid_tbl_len);
  facts.capability_mask = attr.port_cap_flags;
  facts.pkeys = port.pkeys;
  return facts;
}

}  // namespace

void local_mad(Core& core, HcaFile& file, const control::MadIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such_port(file, in.port));
  }
  const std::string description = file.session->node->name + " " + file.hca->name;
  mad::Mad response{};
  std::string reason;
  const Status status = mad::answer(node_facts(*file.hca, description), port_facts(*port),
                                    std::bit_cast<mad::Mad>(in.mad), response, reason);
  if (status != Status::Ok) return fail(core, std::move(irp), status, std::move(reason));
  succeed_with(std::move(irp), std::bit_cast<control::MadOut>(response), mad::kMadSize);
}

}  // namespace ib::drivers
