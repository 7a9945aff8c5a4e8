// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The registry of uDAPL for a node (dat.conf): an entry for each of its addresses over the RDMA CM
// (ofa-v2-ib0), and for each port over sockets (ofa-v2-softib0-1) and UD (ofa-v2-softib0-1u).
#pragma once

#include "fabric/model.h"

#include <string>

namespace ib::drivers {

std::string dat_conf(const fabric::Node& node);

}  // namespace ib::drivers
