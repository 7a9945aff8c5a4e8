// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A subnet to draw, out of what softibd tells: `softib topology --json`, the programs of `softib
// status`, and a way of `softib path`.
#pragma once

#include "fabric/picture/shown_subnet.h"
#include "softib/pages/fabric_state.h"

namespace ib::softib {

// Elements without an InfiniBand port are not shown.
// `state` is an object with the clients, and `programs`.
fabric::ShownSubnet read_subnet(const Json& topology, const Json& state);

// The way becomes the route of the picture. `from` and `to`: its ends as the user named them.
void read_route(fabric::ShownSubnet& subnet, const Json& path, const std::string& from,
                const std::string& to);

// A number of all that decides which boxes and lines a picture has: elements, cables, the route.
std::uint64_t structure_of(const fabric::ShownSubnet& subnet);

}  // namespace ib::softib
