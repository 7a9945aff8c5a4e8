// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device_tree.h"

#include <algorithm>
#include <utility>

namespace ib::io {
namespace {

DeviceNode* search(DeviceNode* node, const std::function<bool(const DeviceNode&)>& is_it) {
  if (node == nullptr || is_it(*node)) return node;
  for (const auto& child : node->children()) {
    if (DeviceNode* found = search(child.get(), is_it)) return found;
  }
  return nullptr;
}

void collect(const DeviceNode& node, DeviceTree::Order order, std::vector<std::uint64_t>& ids) {
  if (order == DeviceTree::Order::ParentsFirst) ids.push_back(node.id());
  for (const auto& child : node.children()) collect(*child, order, ids);
  if (order == DeviceTree::Order::ChildrenFirst) ids.push_back(node.id());
}

}  // namespace

DeviceTree::~DeviceTree() {
  IB_ASSERT(sent_.empty());
  leaving_.clear();  // before the tree: these nodes may refer to ones of the tree
}

DeviceNode& DeviceTree::add(DeviceNode* parent, std::shared_ptr<DeviceObject> physical) {
  auto node = std::make_unique<DeviceNode>(++last_id_, parent, std::move(physical));
  DeviceNode& added = *node;
  by_id_.emplace(added.id(), &added);
  if (parent != nullptr) {
    parent->children_.push_back(std::move(node));
  } else {
    IB_ASSERT(root_ == nullptr);
    root_ = std::move(node);
  }
  return added;
}

void DeviceTree::sort_children(DeviceNode& node,
                               const std::function<std::size_t(const DeviceObject&)>& number_of) {
  std::ranges::stable_sort(
      node.children_, {}, [&number_of](const auto& child) { return number_of(child->physical()); });
}

void DeviceTree::forget(const DeviceNode& node) {
  for (const auto& child : node.children()) forget(*child);
  by_id_.erase(node.id());
}

void DeviceTree::destroy_children(DeviceNode& node) {
  for (const auto& child : node.children_) forget(*child);
  node.children_.clear();
  node.child_ids_.clear();
}

bool DeviceTree::enter_path(const DeviceNode& node) {
  return node.parent_ == nullptr ||
         node.parent_->child_ids_.try_emplace(node.path(), node.id()).second;
}

void DeviceTree::leave_path(const DeviceNode& node) {
  if (node.parent_ == nullptr) return;
  auto& ids = node.parent_->child_ids_;
  const auto found = ids.find(node.path());
  if (found != ids.end() && found->second == node.id()) ids.erase(found);  // not its double's
}

void DeviceTree::destroy(DeviceNode& node) {
  forget(node);
  leave_path(node);
  auto& list = node.parent_ != nullptr ? node.parent_->children_ : leaving_;
  std::erase_if(list, [&](const auto& entry) { return entry.get() == &node; });
}

void DeviceTree::move_to_leaving(DeviceNode& node) {
  IB_ASSERT(node.parent_ != nullptr);
  auto& siblings = node.parent_->children_;
  const auto here = std::find_if(siblings.begin(), siblings.end(),
                                 [&](const auto& entry) { return entry.get() == &node; });
  leave_path(node);
  leaving_.push_back(std::move(*here));
  siblings.erase(here);
  node.parent_ = nullptr;
}

DeviceNode* DeviceTree::find(std::uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

DeviceNode* DeviceTree::find_present(std::uint64_t id) const {
  DeviceNode* node = find(id);
  // A child of a device that was pulled out may have been removed before its parent can be.
  for (const DeviceNode* at = node; at != nullptr; at = at->parent()) {
    if (at->state() == NodeState::SurpriseRemoved) return nullptr;
  }
  return node;
}

DeviceNode* DeviceTree::find_if(const std::function<bool(const DeviceNode&)>& is_it) const {
  return search(root_.get(), is_it);
}

std::vector<std::uint64_t> DeviceTree::ids_of(const DeviceNode& top, Order order) {
  std::vector<std::uint64_t> ids;
  collect(top, order, ids);
  return ids;
}

void DeviceTree::begin_action(std::function<void()> action) {
  actions_.push_back(std::move(action));
  if (actions_.size() == 1) executor_.post([this] { actions_.front()(); });
}

void DeviceTree::end_action() {
  IB_ASSERT(!actions_.empty());
  // Posted: the action's own code is still on the stack.
  executor_.post([this] {
    actions_.pop_front();
    if (!actions_.empty()) actions_.front()();
  });
}

void DeviceTree::send(DeviceObject& device, Major major, std::uint32_t code,
                      TypedPointer parameters, Answered answered) {
  Sent& sent = sent_.emplace_back();
  sent.self = std::prev(sent_.end());
  sent.tree = this;
  sent.answered = std::move(answered);
  sent.irp.major = major;
  sent.irp.code = code;
  sent.irp.parameters = parameters;
  call_driver(device, sent.irp.start(&on_done, &sent));
}

void DeviceTree::on_done(Irp&, void* context) {
  Sent& sent = *static_cast<Sent*>(context);
  sent.tree->executor_.post([&sent] {
    // It may destroy the device that the request went to, so the request is over first.
    std::list<Sent> over;
    over.splice(over.begin(), sent.tree->sent_, sent.self);
    over.front().answered(over.front().irp);
  });
}

// A driver that has completed its request already is not disturbed by it.
void DeviceTree::cancel_requests() {
  for (Sent& sent : sent_) sent.irp.cancel();
}

void DeviceTree::set_state(DeviceNode& node, NodeState state, const std::string& why) {
  if (node.state_ == state) return;
  IB_ASSERT(may_follow(node.state_, state));
  // Ordinary steps would fill the trace of a large fabric.
  const bool everyday = node.state_ == NodeState::Present &&
                        (state == NodeState::Started || state == NodeState::NoDriver);
  if (everyday) {
    node.state_ = state;
    return;
  }
  trace(node.path() + ": " + node_state_name(node.state_) + " -> " + node_state_name(state) +
        (why.empty() ? "" : ": " + why));
  node.state_ = state;
}

}  // namespace ib::io
