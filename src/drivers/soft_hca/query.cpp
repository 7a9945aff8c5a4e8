// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Attributes of an HCA [IBA1 11.2.1.2]: from verbs/limits.h and the model; tables of its ports.
#include "base/buffers.h"
#include "drivers/soft_hca/handlers.h"
#include "fabric/port_attributes.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <bit>

namespace ib::drivers {

namespace limits = verbs::limits;

// Counts are those that one process may have: a program that creates as many succeeds.
control::CaAttr ca_attributes(const fabric::Hca& hca) {
  control::CaAttr attr;
  put_text(attr.fw_ver, "1.0.0");
  attr.node_guid = hca.node_guid;
  attr.sys_image_guid = hca.node_guid;
  attr.max_mr_size = limits::kMaxMrSize;
  attr.page_size_cap = limits::kPageSizes;
  attr.vendor_id = limits::kVendorId;
  attr.vendor_part_id = limits::kVendorPartId;
  attr.hw_ver = limits::kHwVersion;
  attr.max_qp = limits::quota_of_one(limits::kMaxQp);
  attr.max_qp_wr = limits::kMaxQpWr;
  attr.device_cap_flags = limits::kDeviceCaps;
  attr.max_sge = limits::kMaxSge;
  attr.max_sge_rd = limits::kMaxSge;
  attr.max_cq = limits::quota_of_one(limits::kMaxCq);
  attr.max_cqe = limits::kMaxCqe;
  attr.max_mr = limits::quota_of_one(limits::kMaxMr);
  attr.max_pd = limits::quota_of_one(limits::kMaxPd);
  attr.max_qp_rd_atom = limits::kMaxReadAtomic;
  attr.max_qp_init_rd_atom = limits::kMaxReadAtomic;
  attr.max_res_rd_atom = limits::kMaxReadAtomic * attr.max_qp;
  attr.max_mw = limits::quota_of_one(limits::kMaxMw);
  attr.max_mcast_grp = limits::kMaxMcastGroups;
  attr.max_mcast_qp_attach = limits::kMaxMcastAttachPerGroup;
  attr.max_total_mcast_qp_attach = limits::kMaxMcastAttach;
  attr.max_ah = limits::quota_of_one(limits::kMaxAh);
  attr.max_srq = limits::quota_of_one(limits::kMaxSrq);
  attr.max_srq_wr = limits::kMaxSrqWr;
  attr.max_srq_sge = limits::kMaxSrqSge;
  attr.max_inline = limits::kMaxInline;
  attr.max_xrcd = limits::quota_of_one(limits::kMaxXrcd);
  std::size_t pkeys = 0;
  for (const fabric::Port& port : hca.ports) pkeys = std::max(pkeys, port.pkeys.size());
  attr.max_pkeys = static_cast<std::uint32_t>(pkeys);
  attr.local_ca_ack_delay = limits::kLocalAckDelay;
  attr.port_count = static_cast<std::uint32_t>(hca.ports.size());
  attr.max_dm_size = limits::kMaxDmSize;
  return attr;
}

fabric::Port* find_port(HcaFile& file, std::uint32_t number) {
  auto& ports = file.hca->ports;
  return number >= 1 && number <= ports.size() ? &ports[number - 1] : nullptr;
}

std::string no_such_port(const HcaFile& file, std::uint32_t number) {
  return fmt::format("HCA {} has ports 1 to {}, not {}", file.hca->name, file.hca->ports.size(),
                     number);
}

void query_ca(Core&, HcaFile& file, io::IrpRef irp) {
  succeed_with(std::move(irp), ca_attributes(*file.hca));
}

void query_port(Core& core, HcaFile& file, const control::PortIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such_port(file, in.port));
  }
  succeed_with(std::move(irp), port_attributes(*port));
}

void query_gid(Core& core, HcaFile& file, const control::TableIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr || in.index >= limits::kGidTableLength) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                port == nullptr ? no_such_port(file, in.port)
                                : fmt::format("port {} has {} GIDs, there is no index {}", in.port,
                                              limits::kGidTableLength, in.index));
  }
  control::GidOut out;
  if (in.index < port->gids.size()) {
    const fabric::GidEntry& entry = port->gids[in.index];
    out.gid = entry.gid;
    out.type = entry.type;
    put_text(out.interface, entry.interface);
  }
  succeed_with(std::move(irp), out);
}

void query_pkey(Core& core, HcaFile& file, const control::TableIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr || in.index >= port->pkeys.size()) {
    return fail(core, std::move(irp), Status::InvalidParameter,
                port == nullptr ? no_such_port(file, in.port)
                                : fmt::format("port {} has {} P_Keys, there is no index {}",
                                              in.port, port->pkeys.size(), in.index));
  }
  succeed_with(std::move(irp), control::PkeyOut{port->pkeys[in.index], {}});
}

}  // namespace ib::drivers
