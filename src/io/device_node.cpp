// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device_node.h"

#include <algorithm>

namespace ib::io {

const char* node_state_name(NodeState state) {
  switch (state) {
    case NodeState::Present: return "present";
    case NodeState::NoDriver: return "no driver";
    case NodeState::Started: return "started";
    case NodeState::Failed: return "failed";
    case NodeState::QueryRemove: return "query-remove";
    case NodeState::SurpriseRemoved: return "surprise-removed";
    case NodeState::Removed: return "removed";
  }
  return "unknown";
}

DeviceNode::~DeviceNode() {
  children_.clear();
  destroy_stack();
}

void DeviceNode::destroy_stack() {
  while (!stack_.empty()) stack_.pop_back();
}

const DeviceObject* DeviceNode::function() const {
  const auto found = std::find_if(stack_.begin(), stack_.end(), [](const auto& device) {
    return device->kind() == DeviceKind::Functional;
  });
  return found == stack_.end() ? nullptr : found->get();
}

bool DeviceNode::uses(const DriverObject& driver) const {
  return std::any_of(stack_.begin(), stack_.end(),
                     [&](const auto& device) { return &device->driver() == &driver; });
}

// Files are opened on the top of a stack.
bool DeviceNode::has_open_files() const {
  return !top().open_files().empty();
}

bool DeviceNode::is_idle() const {
  for (const DeviceObject* device = physical_.get(); device != nullptr; device = device->upper()) {
    if (device->requests() > 0 || !device->open_files().empty()) return false;
  }
  return true;
}

}  // namespace ib::io
