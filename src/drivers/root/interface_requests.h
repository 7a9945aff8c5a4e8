// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The request of a driver of IP over InfiniBand (docs/design/0034) that says which interfaces its
// node has, and with which addresses: rdma_cm resolves these, and /sys/class/net shows them.
#pragma once

#include "drivers/soft_hca/core.h"
#include "drivers/soft_hca/records.h"
#include "io/irp.h"
#include "verbs/control.h"

namespace ib::drivers {

void set_ip_interface(Core& core, Session& session, const control::SetIpInterfaceIn& in,
                      io::IrpRef irp);

}  // namespace ib::drivers
