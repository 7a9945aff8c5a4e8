// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bringing devices up: the report of a bus, the ids of each device, its drivers, Start, and its
// children.
#include "io/pnp_manager.h"

#include "io/steps_internal.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace ib::io {

// One action that starts nodes and enumerates buses until no work is left.
class PnpManager::Bringing : public std::enable_shared_from_this<Bringing> {
 public:
  Bringing(PnpManager& pnp, Done done) : pnp_(pnp), tree_(pnp.tree_), done_(std::move(done)) {}

  std::deque<std::uint64_t> to_identify;
  std::deque<std::uint64_t> to_start;
  std::deque<std::uint64_t> to_enumerate;

  // The loop of the action: newest work first, so that a device is complete before its sibling.
  void go_on() {
    const auto take = [](std::deque<std::uint64_t>& from) {
      const std::uint64_t id = from.front();
      from.pop_front();
      return id;
    };
    while (!to_identify.empty() || !to_start.empty() || !to_enumerate.empty()) {
      const bool identify_first = !to_identify.empty();
      const bool start_next = !identify_first && !to_start.empty();
      DeviceNode* node = tree_.find(take(identify_first ? to_identify
                                         : start_next   ? to_start
                                                        : to_enumerate));
      if (node == nullptr) continue;
      if (identify_first) return identify(*node);
      if (start_next && waits(*node)) continue;
      if (start_next) return bind(*node);
      if (node->is_started()) return ask(*node);
    }
    done_(Status::Ok, {});
    tree_.end_action();
  }

 private:
  bool waits(DeviceNode& node);
  void identify(DeviceNode& node);
  void bind(DeviceNode& node);
  bool build_stack(DeviceNode& node, const DriverRegistry::Match& match, std::string& reason);
  bool add_device(DeviceNode& node, DriverObject& driver, std::string& reason);
  void send_start(DeviceNode& node);
  void failed(DeviceNode& node, const std::string& reason);
  void ask(DeviceNode& bus);
  void compare(DeviceNode& bus, const std::shared_ptr<DeviceRelations>& relations);

  PnpManager& pnp_;
  DeviceTree& tree_;
  Done done_;
};

// A device that started below a sleeping one would miss the sleep. It stays Present; the power
// manager starts it after the resume.
bool PnpManager::Bringing::waits(DeviceNode& node) {
  const DeviceNode* asleep = &node;
  while (asleep != nullptr && asleep->system_power() == SystemPower::Working) {
    asleep = asleep->parent();
  }
  node.problem_.clear();
  if (asleep == nullptr) return false;
  node.problem_ = asleep->path() + " sleeps";
  tree_.trace(node.path() + " waits: " + node.problem_);
  return true;
}

void PnpManager::Bringing::identify(DeviceNode& node) {
  auto ids = std::make_shared<DeviceIds>();
  TypedPointer parameters;
  parameters.set(ids.get());
  tree_.send(node.top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::QueryId), parameters,
             [self = shared_from_this(), id = node.id(), ids](Irp& irp) {
               DeviceNode& found = *self->tree_.find(id);
               found.ids_ = std::move(*ids);
               const DeviceNode* parent = found.parent();
               const bool is_named = irp.status == Status::Ok && !found.ids_.device.empty();
               const bool is_double = is_named && !DeviceTree::enter_path(found);
               if (!is_named || is_double) {
                 self->tree_.trace(
                     "a device of " + (parent != nullptr ? parent->path() : "nobody") +
                     " is left out: " +
                     (is_double ? found.path() + " is there already" : "its driver tells no id"));
                 self->tree_.destroy(found);
               } else {
                 self->to_start.push_back(id);
               }
               self->go_on();
             });
}

void PnpManager::Bringing::bind(DeviceNode& node) {
  pnp_.drivers_.match(
      node.ids(), [self = shared_from_this(), id = node.id()](const DriverRegistry::Match& match) {
        DeviceNode& found = *self->tree_.find(id);
        if (match.status == Status::NotFound && match.function == nullptr) {
          self->tree_.set_state(found, NodeState::NoDriver, {});
          return self->go_on();
        }
        std::string reason = match.reason;
        if (match.status != Status::Ok || !self->build_stack(found, match, reason)) {
          return self->failed(found, reason);
        }
        self->send_start(found);
      });
}

bool PnpManager::Bringing::build_stack(DeviceNode& node, const DriverRegistry::Match& match,
                                       std::string& reason) {
  if (match.function != nullptr && !add_device(node, *match.function, reason)) return false;
  return std::all_of(match.filters.begin(), match.filters.end(),
                     [&](DriverObject* filter) { return add_device(node, *filter, reason); });
}

bool PnpManager::Bringing::add_device(DeviceNode& node, DriverObject& driver, std::string& reason) {
  if (driver.add_device == nullptr) {
    reason = "driver " + driver.name + " takes no devices";
    return false;
  }
  driver.references.take(DriverUse::Call);
  auto device = driver.add_device(driver, node, reason);
  driver.references.release(DriverUse::Call);
  if (!device) {
    if (reason.empty()) reason = status_text(device.error());
    reason = "driver " + driver.name + ": " + reason;
    return false;
  }
  if (*device == nullptr) return true;
  if ((*device)->attach(node.physical()) != Status::Ok) {
    reason = "its device stack is too deep";
    return false;
  }
  node.stack_.push_back(*std::move(device));
  return true;
}

void PnpManager::Bringing::send_start(DeviceNode& node) {
  tree_.send(node.top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::Start), {},
             [self = shared_from_this(), id = node.id()](Irp& irp) {
               DeviceNode& found = *self->tree_.find(id);
               if (irp.status != Status::Ok) {
                 return self->failed(found,
                                     irp.reason.empty() ? status_text(irp.status) : irp.reason);
               }
               found.problem_.clear();
               self->tree_.set_state(found, NodeState::Started, {});
               self->to_enumerate.push_back(id);
               self->go_on();
             });
}

void PnpManager::Bringing::failed(DeviceNode& node, const std::string& reason) {
  pnp_.take_down(node, [self = shared_from_this(), id = node.id(), reason] {
    DeviceNode& found = *self->tree_.find(id);
    found.problem_ = reason;
    self->tree_.set_state(found, NodeState::Failed, reason);
    self->go_on();
  });
}

void PnpManager::Bringing::ask(DeviceNode& bus) {
  auto relations = std::make_shared<DeviceRelations>();
  TypedPointer parameters;
  parameters.set(relations.get());
  tree_.send(bus.top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::QueryDeviceRelations),
             parameters, [self = shared_from_this(), id = bus.id(), relations](Irp& irp) {
               DeviceNode& found = *self->tree_.find(id);
               // A bus that does not answer keeps its children.
               if (irp.status != Status::Ok) {
                 self->tree_.trace(found.path() + " does not tell its children: " + irp.reason);
                 return self->go_on();
               }
               self->compare(found, relations);
             });
}

void PnpManager::Bringing::compare(DeviceNode& bus,
                                   const std::shared_ptr<DeviceRelations>& relations) {
  std::unordered_map<const DeviceObject*, std::size_t> reported;  // at which place
  for (const auto& device : relations->devices) reported.emplace(device.get(), reported.size());
  std::unordered_set<const DeviceObject*> known;
  std::vector<std::uint64_t> gone;
  for (const auto& child : bus.children()) {
    known.insert(&child->physical());
    if (!reported.contains(&child->physical())) gone.push_back(child->id());
  }
  // Its old stack still stands on it: it can return after its last user has left.
  for (const auto& node : tree_.leaving()) known.insert(&node->physical());
  bool has_new = false;
  for (const auto& device : relations->devices) {
    const bool is_new = known.insert(device.get()).second;
    if (is_new) to_identify.push_back(tree_.add(&bus, device).id());
    has_new |= is_new;
  }
  if (has_new) {
    tree_.sort_children(bus, [&reported](const DeviceObject& device) {
      const auto place = reported.find(&device);
      return place != reported.end() ? place->second : reported.size();
    });
  }
  Steps::run(
      std::move(gone),
      [self = shared_from_this()](std::uint64_t id, const Steps::Next& next) {
        DeviceNode& node = *self->tree_.find(id);
        if (node.state() == NodeState::Removed) {  // in order, before it was pulled
          self->tree_.destroy(node);
          return next(true);
        }
        self->pnp_.surprise(node, "its bus does not report it any more", [next] { next(true); });
      },
      [self = shared_from_this()] { self->go_on(); });
}

PnpManager::~PnpManager() = default;

void PnpManager::begin(std::shared_ptr<DeviceObject> root, Done done) {
  tree_.begin_action([this, root = std::move(root), done = std::move(done)] {
    auto bringing = std::make_shared<Bringing>(*this, done);
    bringing->to_identify.push_back(tree_.add(nullptr, root).id());
    bringing->go_on();
  });
}

void PnpManager::enumerate(std::uint64_t bus, Done done) {
  tree_.begin_action([this, bus, done = std::move(done)] {
    const DeviceNode* node = tree_.find(bus);
    if (node == nullptr || !node->is_started()) {
      done(node == nullptr ? Status::NotFound : Status::InvalidState,
           node == nullptr ? "this bus is not there any more"
                           : node->path() + " is " + node_state_name(node->state()));
      return tree_.end_action();
    }
    auto bringing = std::make_shared<Bringing>(*this, done);
    bringing->to_enumerate.push_back(bus);
    bringing->go_on();
  });
}

void PnpManager::start(std::vector<std::uint64_t> nodes, Done done) {
  tree_.begin_action([this, nodes = std::move(nodes), done = std::move(done)] {
    auto bringing = std::make_shared<Bringing>(*this, done);
    for (const std::uint64_t id : nodes) {
      DeviceNode* node = tree_.find_present(id);
      const bool stands_still =
          node != nullptr &&
          (node->state() == NodeState::Present || node->state() == NodeState::Removed ||
           node->state() == NodeState::Failed || node->state() == NodeState::NoDriver);
      if (!stands_still) continue;
      tree_.set_state(*node, NodeState::Present, "to be started");
      bringing->to_start.push_back(id);
    }
    bringing->go_on();
  });
}

void PnpManager::start_driverless(Done done) {
  std::vector<std::uint64_t> nodes;
  if (tree_.root() != nullptr) {
    for (const std::uint64_t id :
         DeviceTree::ids_of(*tree_.root(), DeviceTree::Order::ParentsFirst)) {
      if (tree_.find(id)->state() == NodeState::NoDriver) nodes.push_back(id);
    }
  }
  start(std::move(nodes), std::move(done));
}

}  // namespace ib::io
