// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The driver that softib-net is linked with.
#pragma once

#include "linux/net/node_network.h"

#include <memory>

namespace ib::softib_net {

std::unique_ptr<os::net::NodeDriver> make_driver(const os::net::NodePlace& place);

}  // namespace ib::softib_net
