// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/host_devices.h"

#include <utility>

namespace ib::drivers {

void HostDevices::add(fabric::Node& node) {
  const Status devices = names_.add_directory(node.name, "\\Device");
  const Status by_guid = names_.add_directory(node.name, "\\Device\\ibal", true);
  IB_ASSERT(devices == Status::Ok && by_guid == Status::Ok);  // nobody else makes any
  bus_.add_host(node);
}

void HostDevices::make(fabric::Node& node, std::function<void()> then) {
  const bool is_new = bus_.host(node) == nullptr;
  if (!is_new && !in_the_making_.contains(&node)) return then();
  if (is_new) {
    add(node);
    in_the_making_.insert(&node);
  }
  // Actions run one after the other: when this one is over, the one that makes them is as well.
  pnp_.enumerate(tree_.root()->id(),
                 [this, &node, then = std::move(then)](Status, const std::string&) {
                   in_the_making_.erase(&node);
                   then();
                 });
}

void HostDevices::make_all(std::function<void()> then) {
  for (fabric::Node& node : fabric_.nodes()) {
    if (bus_.host(node) != nullptr) continue;
    add(node);
    in_the_making_.insert(&node);
  }
  if (in_the_making_.empty()) return then();
  pnp_.enumerate(tree_.root()->id(), [this, then = std::move(then)](Status, const std::string&) {
    in_the_making_.clear();
    then();
  });
}

void HostDevices::add_all() {
  for (fabric::Node& node : fabric_.nodes()) add(node);
}

io::DeviceNode* HostDevices::node_of(const fabric::Node& host) const {
  const io::DeviceObject* physical = bus_.host(host);
  if (physical == nullptr) return nullptr;
  return tree_.find_if(
      [physical](const io::DeviceNode& found) { return &found.physical() == physical; });
}

}  // namespace ib::drivers
