// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DeviceNode: one device of the tree: its description by the bus, the stack of its drivers, and its
// state (docs/design/0004).
//
// Thread rule: the executor's thread. Drivers may look at a node in add_device() only.
#pragma once

#include "io/device.h"
#include "io/pnp.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::io {

enum class NodeState : std::uint8_t {
  Present,   // its ids are known; outside of an action: waits until what is above it is awake
  NoDriver,  // no driver of the store matches them
  Started,
  Failed,           // it did not start, or not come back from sleep: see problem()
  QueryRemove,      // queried for removal; no new opens
  SurpriseRemoved,  // gone; waits for its files and requests to end
  Removed,          // out of service; the bus still reports it
};
const char* node_state_name(NodeState state);  // "no driver"

// The legal changes of state.
constexpr bool may_follow(NodeState from, NodeState to) {
  using enum NodeState;
  switch (from) {
    case Present:
      return to == NoDriver || to == Started || to == Failed || to == Removed ||
             to == SurpriseRemoved || to == QueryRemove;
    case NoDriver:
      return to == Present || to == Removed || to == SurpriseRemoved || to == QueryRemove;
    case Started: return to == QueryRemove || to == SurpriseRemoved || to == Failed;
    case Failed:
      return to == Present || to == Removed || to == SurpriseRemoved || to == QueryRemove;
    case QueryRemove:
      return to == Present || to == Started || to == NoDriver || to == Failed || to == Removed ||
             to == SurpriseRemoved;
    case SurpriseRemoved: return to == Removed;
    case Removed: return to == Present || to == SurpriseRemoved;
  }
  return false;
}
static_assert(!may_follow(NodeState::SurpriseRemoved, NodeState::Started), "gone is gone");

class IB_DRIVER_API DeviceNode {
 public:
  DeviceNode(std::uint64_t id, DeviceNode* parent, std::shared_ptr<DeviceObject> physical)
      : id_(id), parent_(parent), physical_(std::move(physical)) {}
  DeviceNode(const DeviceNode&) = delete;
  DeviceNode& operator=(const DeviceNode&) = delete;
  ~DeviceNode();  // children first, then the stack from its top

  std::uint64_t id() const { return id_; }  // never used again: keep it instead of a pointer
  DeviceNode* parent() const { return parent_; }
  const std::vector<std::unique_ptr<DeviceNode>>& children() const { return children_; }
  const DeviceIds& ids() const { return ids_; }
  // "SOFTIB\HCA\0253460000000100"
  std::string path() const { return ids_.device + "\\" + ids_.instance; }
  NodeState state() const { return state_; }
  bool is_started() const { return state_ == NodeState::Started; }
  const std::string& problem() const { return problem_; }  // of Failed, and the last veto

  DeviceObject& physical() const { return *physical_; }
  DeviceObject& top() const { return physical_->top(); }
  // Functional device and filters, lowest first.
  const std::vector<std::unique_ptr<DeviceObject>>& stack() const { return stack_; }
  const DeviceObject* function() const;  // nullptr: none, or raw
  bool uses(const DriverObject& driver) const;

  SystemPower system_power() const { return system_power_; }
  DevicePower device_power() const { return device_power_; }

  // No file is open on the stack, and no request is in it.
  bool is_idle() const;
  bool has_open_files() const;

 private:
  friend class DeviceTree;
  friend class PnpManager;
  friend class PowerManager;

  void destroy_stack();

  std::uint64_t id_;
  DeviceNode* parent_;
  std::shared_ptr<DeviceObject> physical_;
  DeviceIds ids_;
  std::vector<std::unique_ptr<DeviceObject>> stack_;
  std::vector<std::unique_ptr<DeviceNode>> children_;
  std::unordered_map<std::string, std::uint64_t> child_ids_;  // by path, once identified
  NodeState state_ = NodeState::Present;
  NodeState before_query_ = NodeState::Started;  // where CancelRemove leads back to
  std::string problem_;
  SystemPower system_power_ = SystemPower::Working;
  DevicePower device_power_ = DevicePower::D0;
};

}  // namespace ib::io
