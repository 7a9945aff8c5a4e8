// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/port_attributes.h"

#include "verbs/limits.h"

namespace ib::fabric {

namespace control = verbs::control;
namespace limits = verbs::limits;

control::PortAttr port_attributes(const Port& port) {
  control::PortAttr attr;
  attr.state = port.state;
  attr.gid_tbl_len = limits::kGidTableLength;
  attr.port_cap_flags = port.capability_mask;
  attr.link_layer = port.link_layer;
  attr.max_msg_sz = limits::kMaxMessage;
  attr.pkey_tbl_len = static_cast<std::uint32_t>(port.pkeys.size());
  attr.lid = port.lid;
  attr.lmc = port.lmc;
  attr.sm_lid = port.sm_lid;
  attr.sm_sl = port.sm_sl;
  attr.max_vl_num = port.is_ethernet() ? 1 : kDataLanes;
  if (port.is_ethernet()) {
    attr.flags = control::port_flag::kGrhRequired;
  } else {
    attr.subnet_timeout = port.subnet_timeout;
    attr.active_mtu = port.mtu;
  }
  attr.active_width = port.width;
  attr.active_speed = port.speed;
  attr.phys_state = port.physical_state;
  return attr;
}

}  // namespace ib::fabric
