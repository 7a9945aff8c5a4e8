// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process of a node: takes its place in a network namespace and runs the driver there.
#pragma once

#include "linux/net/node_network.h"
#include "platform/control_channel.h"
#include "setup/net/net_messages.h"

#include <functional>
#include <memory>
#include <vector>

namespace ib::softib_net {

using MakeDriver = std::function<std::unique_ptr<os::net::NodeDriver>(const os::net::NodePlace&)>;

struct NodeStart {
  os::net::NodePlace place;
  std::vector<softib::PlanEntry> plan;
  platform::NativeHandle network_namespace;  // invalid: a new one is made
  // The namespace is softib's own: interfaces stay there when the driver ends.
  bool keeps_interfaces = true;
};

// In a new process that is to end with its parent. Closes all descriptors but the standard streams
// and what it needs; ends when the driver does.
[[noreturn]] void node_main(NodeStart start, platform::NativeHandle channel,
                            const MakeDriver& make_driver);

}  // namespace ib::softib_net
