// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/power_manager.h"

#include "io/steps_internal.h"

#include <algorithm>
#include <utility>

namespace ib::io {
namespace {

bool takes_part(const DeviceNode& node) {
  return node.is_started() && (!node.stack().empty() || node.ids().raw);
}

}  // namespace

struct PowerManager::Transition {
  std::uint64_t top = 0;
  SystemPower state = SystemPower::Working;
  Done done;
  std::vector<std::uint64_t> nodes;  // children first, Working: parents first
  std::vector<std::uint64_t> asked;
  std::vector<std::uint64_t> lost;  // did not wake up
  Status status = Status::Ok;
  std::string reason;
};

void PowerManager::send(DeviceNode& node, PowerMinor minor, SystemPower state,
                        DeviceTree::Answered answered) {
  auto request = std::make_shared<PowerRequest>();
  request->system = state;
  request->device = device_power_in(state);
  TypedPointer parameters;
  parameters.set(request.get());
  tree_.send(node.top(), Major::Power, static_cast<std::uint32_t>(minor), parameters,
             [request, answered = std::move(answered)](Irp& irp) { answered(irp); });
}

// A host can sleep alone.
bool PowerManager::sleeps_below(std::uint64_t top) const {
  const auto ids = DeviceTree::ids_of(*tree_.find(top), DeviceTree::Order::ParentsFirst);
  return std::any_of(ids.begin(), ids.end(), [this](std::uint64_t id) {
    return tree_.find(id)->system_power() != SystemPower::Working;
  });
}

Status PowerManager::check(std::uint64_t top, SystemPower state, std::string& reason) const {
  const DeviceNode* node = tree_.find_present(top);
  if (node == nullptr) {
    reason = "this device is not there any more";
    return Status::NotFound;
  }
  const bool wakes = state == SystemPower::Working;
  if (node->system_power() == state && !(wakes && sleeps_below(top))) {
    reason = node->path() + " is in the state " + system_power_name(state) + " already";
    return Status::InvalidState;
  }
  if (!wakes && state != SystemPower::Shutdown && node->system_power() != SystemPower::Working) {
    reason = node->path() + " is in the state " + system_power_name(node->system_power()) +
             "; resume it first";
    return Status::InvalidState;
  }
  for (const DeviceNode* above = node->parent(); wakes && above != nullptr;
       above = above->parent()) {
    if (above->system_power() == SystemPower::Working) continue;
    reason =
        above->path() + ", above it, is in the state " + system_power_name(above->system_power());
    return Status::InvalidState;
  }
  return Status::Ok;
}

void PowerManager::set(std::uint64_t top, SystemPower state, Done done) {
  auto transition = std::make_shared<Transition>();
  transition->top = top;
  transition->state = state;
  transition->done = std::move(done);
  tree_.begin_action([this, transition] {
    std::string reason;
    const Status status = check(transition->top, transition->state, reason);
    if (status != Status::Ok) return finish(transition, status, reason);
    const bool wakes = transition->state == SystemPower::Working;
    const auto all =
        DeviceTree::ids_of(*tree_.find(transition->top), wakes ? DeviceTree::Order::ParentsFirst
                                                               : DeviceTree::Order::ChildrenFirst);
    std::copy_if(all.begin(), all.end(), std::back_inserter(transition->nodes),
                 [&](std::uint64_t id) {
                   const DeviceNode& node = *tree_.find(id);
                   const bool works = node.system_power() == SystemPower::Working;
                   return takes_part(node) && works != wakes;
                 });
    if (wakes) return wake(transition);
    if (transition->state == SystemPower::Shutdown) return notify_last_chances(transition);
    query(transition);
  });
}

void PowerManager::query(const std::shared_ptr<Transition>& transition) {
  const auto ask = [this, transition](std::uint64_t id, const Steps::Next& next) {
    transition->asked.push_back(id);
    send(*tree_.find(id), PowerMinor::Query, transition->state,
         [this, transition, id, next](Irp& irp) {
           if (irp.status != Status::Ok) {
             transition->status = Status::DeviceBusy;
             transition->reason =
                 tree_.find(id)->path() + " cannot go to " + system_power_name(transition->state) +
                 " now: " + (irp.reason.empty() ? status_text(irp.status) : irp.reason);
           }
           next(irp.status == Status::Ok);
         });
  };
  Steps::run(transition->nodes, ask, [this, transition] {
    transition->status == Status::Ok ? power_down(transition) : roll_back(transition);
  });
}

void PowerManager::power_down(const std::shared_ptr<Transition>& transition) {
  const auto off = [this, transition](std::uint64_t id, const Steps::Next& next) {
    send(*tree_.find(id), PowerMinor::Set, transition->state,
         [this, transition, id, next](Irp& irp) {
           DeviceNode& node = *tree_.find(id);
           const bool must_go_on = transition->state == SystemPower::Shutdown;
           if (irp.status != Status::Ok) {
             const std::string why = irp.reason.empty() ? status_text(irp.status) : irp.reason;
             transition->reason = node.path() + " failed to power down: " + why;
             tree_.trace(transition->reason);
             if (!must_go_on) transition->status = irp.status;
             return next(must_go_on);
           }
           node.system_power_ = transition->state;
           node.device_power_ = DevicePower::D3;
           next(true);
         });
  };
  Steps::run(transition->nodes, off, [this, transition] {
    if (transition->status != Status::Ok) return roll_back(transition);
    DeviceNode& top = *tree_.find(transition->top);
    top.system_power_ = transition->state;
    finish(transition, Status::Ok, {});
  });
}

// Every queried node gets "stay" or "come back"; parents first.
void PowerManager::roll_back(const std::shared_ptr<Transition>& transition) {
  tree_.trace("power: back to working: " + transition->reason);
  transition->nodes.assign(transition->asked.rbegin(), transition->asked.rend());
  wake(transition);
}

void PowerManager::wake(const std::shared_ptr<Transition>& transition) {
  const auto on = [this, transition](std::uint64_t id, const Steps::Next& next) {
    DeviceNode& node = *tree_.find(id);
    const bool under_a_lost_one =
        std::any_of(transition->lost.begin(), transition->lost.end(), [&](std::uint64_t lost) {
          const DeviceNode* above = node.parent();
          while (above != nullptr && above->id() != lost) above = above->parent();
          return above != nullptr;
        });
    if (under_a_lost_one) return next(true);
    send(node, PowerMinor::Set, SystemPower::Working, [this, transition, id, next](Irp& irp) {
      DeviceNode& woken = *tree_.find(id);
      woken.system_power_ = SystemPower::Working;
      if (irp.status != Status::Ok) {
        woken.problem_ = irp.reason.empty() ? status_text(irp.status) : irp.reason;
        tree_.trace(woken.path() + " did not come back: " + woken.problem_);
        transition->lost.push_back(id);
        return next(true);
      }
      woken.device_power_ = DevicePower::D0;
      next(true);
    });
  };
  Steps::run(transition->nodes, on, [this, transition] {
    if (DeviceNode* top = tree_.find(transition->top)) wake_hosts(*top, transition->state);
    for (const std::uint64_t id : transition->lost) {
      pnp_.surprise_remove(id, [](Status, const std::string&) {});
    }
    start_waiting(transition->top);
    finish(transition, transition->status, transition->reason);
  });
}

// Nodes without devices of their own get no request. A sleep that is rolled back wakes the top of
// it only: hosts below may have slept before.
void PowerManager::wake_hosts(DeviceNode& top, SystemPower wanted) {
  top.system_power_ = SystemPower::Working;
  if (wanted != SystemPower::Working) return;
  for (const std::uint64_t id : DeviceTree::ids_of(top, DeviceTree::Order::ParentsFirst)) {
    DeviceNode& node = *tree_.find(id);
    if (!takes_part(node)) node.system_power_ = SystemPower::Working;
  }
}

// No other action is under way, so Present nodes are those that came during the sleep.
void PowerManager::start_waiting(std::uint64_t top) {
  const DeviceNode* node = tree_.find(top);
  if (node == nullptr) return;
  std::vector<std::uint64_t> waiting;
  for (const std::uint64_t id : DeviceTree::ids_of(*node, DeviceTree::Order::ParentsFirst)) {
    DeviceNode& found = *tree_.find(id);
    if (found.state() != NodeState::Present) continue;
    found.system_power_ = SystemPower::Working;
    found.device_power_ = DevicePower::D0;
    waiting.push_back(id);
  }
  if (!waiting.empty()) pnp_.start(std::move(waiting), [](Status, const std::string&) {});
}

void PowerManager::notify_last_chances(const std::shared_ptr<Transition>& transition) {
  std::vector<std::uint64_t> positions;
  for (std::size_t i = last_chances_.size(); i > 0; --i) positions.push_back(i - 1);
  const auto notify = [this](std::uint64_t position, const Steps::Next& next) {
    // A driver may take its device off when it is notified.
    if (position >= last_chances_.size()) return next(true);
    tree_.send(*last_chances_[position], Major::Shutdown, 0, {}, [next](Irp&) { next(true); });
  };
  Steps::run(std::move(positions), notify, [this, transition] { power_down(transition); });
}

void PowerManager::finish(const std::shared_ptr<Transition>& transition, Status status,
                          const std::string& reason) {
  transition->done(status, reason);
  tree_.end_action();
}

namespace {

// A device request on behalf of a system request, which waits here.
struct Following {
  Following(DeviceObject& who, IrpRef whom) : device(who), system(std::move(whom)) {}
  DeviceObject& device;
  IrpRef system;
  Irp irp;
  PowerRequest request;
};

void on_followed(Irp& irp, void* context) {
  const std::unique_ptr<Following> self(static_cast<Following*>(context));
  if (irp.status != Status::Ok) return std::move(self->system).fail(irp.status, irp.reason);
  pass_down(self->device, std::move(self->system));
}

}  // namespace

void follow_system_power(DeviceObject& device, IrpRef irp) {
  const PowerRequest& request = *irp->parameters.get<PowerRequest>();
  if (!request.is_system) return pass_down(device, std::move(irp));
  const std::uint32_t minor = irp->code;
  auto following = std::make_unique<Following>(device, std::move(irp));
  Following& self = *following;
  self.request = {false, request.system, request.device};
  self.irp.major = Major::Power;
  self.irp.code = minor;
  self.irp.parameters.set(&self.request);
  call_driver(device.top(), self.irp.start(&on_followed, following.release()));
}

}  // namespace ib::io
