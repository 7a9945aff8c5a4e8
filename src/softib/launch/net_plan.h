// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses and routes of a node's interfaces (IP over InfiniBand), from the state of its
// fabric.
//
// Programs treat 127.0.0.0/8 as the machine itself, so the default address of a node is there with
// 10 in place of 127: 10.151.96.1 for 127.151.96.1. Each port has a network of its own, as large as
// the stride of the block. Beside it each port has an IPv6 address in fd69:62PP::/32, with PP the
// port. Configured addresses are taken as they are, in networks of /24 and /64.
#pragma once

#include "setup/ipoib_mode.h"
#include "setup/net/net_messages.h"
#include "softib/pages/fabric_state.h"

#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

// Returns whether addresses of the other nodes count, too: then `state` has to have all nodes.
bool needs_all_nodes(const Json& state);

// Throws CliError(NotFound) if the node has no InfiniBand port, CliError(Daemon) if the state lacks
// what it needs.
std::vector<PlanEntry> plan_network(const Json& state, const std::string& node);

// That of the configuration file of the fabric. CliError(Daemon), as above.
IpoibMode configured_mode(const Json& state, const std::string& node);

// The request that makes or joins the network of a node, with plan_network(). `mode`: the name of
// the one that it has to have; any other text: none, so a network that is made has the configured
// one.
ParsedNetRequest network_request(NetCode code, const Json& state, const std::string& node,
                                 const std::string& socket, std::string_view mode);

}  // namespace ib::softib
