// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DeviceTree: the device nodes, and the common part of the PnP and power managers: requests to the
// stacks of nodes, and the queue that lets one of their actions run at a time.
//
// Thread rule: the executor's thread. Requests may be completed on any thread; what follows is
// posted to the executor, so no completion runs inside an action's step.
#pragma once

#include "io/device_node.h"
#include "platform/executor.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ib::io {

class DeviceTree {
 public:
  using Trace = std::function<void(const std::string& line)>;
  using Answered = std::function<void(Irp& irp)>;

  DeviceTree(platform::Executor& executor, Trace trace)
      : executor_(executor), trace_(std::move(trace)) {}
  DeviceTree(const DeviceTree&) = delete;
  DeviceTree& operator=(const DeviceTree&) = delete;
  ~DeviceTree();  // no action under way, no file open

  DeviceNode* root() const { return root_.get(); }
  // Tops of subtrees whose hardware is gone and that wait for their users to leave.
  const std::vector<std::unique_ptr<DeviceNode>>& leaving() const { return leaving_; }
  DeviceNode* find(std::uint64_t id) const;          // nullptr: it has gone
  DeviceNode* find_present(std::uint64_t id) const;  // nullptr also if it is leaving
  // The first for which it holds, parents before children.
  DeviceNode* find_if(const std::function<bool(const DeviceNode&)>& is_it) const;

  enum class Order : std::uint8_t { ParentsFirst, ChildrenFirst };
  // Ids of a node and all below it.
  static std::vector<std::uint64_t> ids_of(const DeviceNode& top, Order order);

  platform::Executor& executor() { return executor_; }
  void trace(const std::string& line) {
    if (trace_) trace_(line);
  }

 private:
  friend class PnpManager;
  friend class PowerManager;

  // An action ends by calling end_action(), in the same step or a later one.
  void begin_action(std::function<void()> action);
  void end_action();

  // `answered` runs in a later step.
  void send(DeviceObject& device, Major major, std::uint32_t code, TypedPointer parameters,
            Answered answered);
  // Cancels the request that the running action waits for.
  void cancel_requests();

  void set_state(DeviceNode& node, NodeState state, const std::string& why);
  // A root (no parent) replaces the tree.
  DeviceNode& add(DeviceNode* parent, std::shared_ptr<DeviceObject> physical);
  // By the number that their physical devices have.
  static void sort_children(DeviceNode& node,
                            const std::function<std::size_t(const DeviceObject&)>& number_of);
  void destroy_children(DeviceNode& node);
  void destroy(DeviceNode& node);  // with all below it; of the tree or leaving
  void move_to_leaving(DeviceNode& node);
  void forget(const DeviceNode& node);
  // Returns false if a sibling has its path. A bus may have thousands of children, so they are not
  // compared one by one.
  static bool enter_path(const DeviceNode& node);
  static void leave_path(const DeviceNode& node);

  struct Sent {
    Irp irp;
    DeviceTree* tree = nullptr;
    Answered answered;
    std::list<Sent>::iterator self;
  };
  static void on_done(Irp& irp, void* context);

  platform::Executor& executor_;
  Trace trace_;
  std::unique_ptr<DeviceNode> root_;
  std::vector<std::unique_ptr<DeviceNode>> leaving_;
  std::unordered_map<std::uint64_t, DeviceNode*> by_id_;
  std::uint64_t last_id_ = 0;
  std::list<Sent> sent_;
  std::deque<std::function<void()>> actions_;  // the first is running
};

}  // namespace ib::io
