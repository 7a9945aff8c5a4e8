// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Removal of devices: in order, with a veto, or as a surprise.
#include "io/pnp_removal.h"

#include "io/steps_internal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace ib::io {
namespace {

constexpr Duration kFirstWatch = std::chrono::milliseconds(1);
constexpr Duration kSlowestWatch = std::chrono::milliseconds(50);

// A driver handles PnP requests there.
bool has_drivers(const DeviceNode& node) {
  return !node.stack().empty() || node.ids().raw;
}

// The driver has agreed, but files of its device are open: the PnP manager's own veto.
std::string open_file_text(const DeviceNode& node) {
  const auto& files = node.top().open_files();
  std::vector<std::uint32_t> pids;
  pids.reserve(files.size());
  for (const FileObject* file : files) pids.push_back(file->client().pid);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return fmt::format("{} has {} open file{}: pid {}", node.path(), files.size(),
                     files.size() == 1 ? "" : "s", fmt::join(pids, " "));
}

}  // namespace

std::shared_ptr<PnpManager::Removal> PnpManager::remove(std::vector<std::uint64_t> tops, Done done,
                                                        Before before) {
  auto removal = std::make_shared<Removal>(std::move(tops), std::move(done), std::move(before));
  tree_.begin_action([this, removal] {
    for (const std::uint64_t top : removal->tops_) {
      const DeviceNode* node = tree_.find_present(top);
      if (node == nullptr) {
        return finish(removal, Status::NotFound, "this device is not there any more");
      }
      for (const std::uint64_t id : DeviceTree::ids_of(*node, DeviceTree::Order::ChildrenFirst)) {
        // One top may be below another.
        const auto known = std::find(removal->nodes_.begin(), removal->nodes_.end(), id);
        if (known == removal->nodes_.end()) removal->nodes_.push_back(id);
      }
    }
    query(removal);
  });
  return removal;
}

void PnpManager::cancel(Removal& removal) {
  if (removal.phase_ != Removal::Phase::Waiting && removal.phase_ != Removal::Phase::Asking) return;
  removal.cancelled_ = true;
  // A driver that still works on a query ends it now; an answer that is on its way is processed,
  // and the next step checks the flag.
  if (removal.phase_ == Removal::Phase::Asking) tree_.cancel_requests();
}

void PnpManager::query(const std::shared_ptr<Removal>& removal) {
  removal->phase_ = Removal::Phase::Asking;
  const auto ask = [this, removal](std::uint64_t id, const Steps::Next& next) {
    DeviceNode* node = tree_.find(id);
    if (node == nullptr || node->state() == NodeState::Removed) return next(true);
    if (removal->cancelled_) return next(false);
    node->before_query_ = node->state();
    tree_.set_state(*node, NodeState::QueryRemove, {});
    removal->asked_.push_back(id);
    if (!has_drivers(*node)) return next(true);
    tree_.send(node->top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::QueryRemove), {},
               [this, removal, id, next](Irp& irp) {
                 DeviceNode& asked = *tree_.find(id);
                 removal->veto_ = irp.status;
                 removal->reason_ = irp.reason.empty() ? status_text(irp.status) : irp.reason;
                 if (irp.status == Status::Ok && asked.has_open_files()) {
                   removal->veto_ = Status::DeviceBusy;
                   removal->reason_ = open_file_text(asked);
                 }
                 if (removal->veto_ != Status::Ok) asked.problem_ = removal->reason_;
                 next(removal->veto_ == Status::Ok);
               });
  };
  const auto prepare = [removal, ask](std::uint64_t id, const Steps::Next& next) {
    const auto& tops = removal->tops_;
    const bool is_top = std::find(tops.begin(), tops.end(), id) != tops.end();
    if (!removal->before_ || !is_top || removal->cancelled_) return ask(id, next);
    removal->before_([ask, id, next] { ask(id, next); });
  };
  Steps::run(removal->nodes_, prepare, [this, removal] {
    if (removal->cancelled_) {
      removal->veto_ = Status::Cancelled;
      removal->reason_ = "the removal was withdrawn";
    }
    removal->veto_ == Status::Ok ? carry_out(removal) : withdraw(removal);
  });
}

// In the opposite order; the objector gets it too, as it may have begun to prepare.
void PnpManager::withdraw(const std::shared_ptr<Removal>& removal) {
  std::vector<std::uint64_t> asked(removal->asked_.rbegin(), removal->asked_.rend());
  const auto tell = [this](std::uint64_t id, const Steps::Next& next) {
    DeviceNode& node = *tree_.find(id);
    if (!has_drivers(node)) {
      tree_.set_state(node, node.before_query_, "stays");
      return next(true);
    }
    tree_.send(node.top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::CancelRemove), {},
               [this, id, next](Irp&) {
                 DeviceNode& stays = *tree_.find(id);
                 tree_.set_state(stays, stays.before_query_, "stays");
                 next(true);
               });
  };
  Steps::run(std::move(asked), tell, [this, removal] {
    const bool own = removal->veto_ == Status::Cancelled && removal->cancelled_;
    finish(removal, own ? Status::Cancelled : Status::DeviceBusy, removal->reason_);
  });
}

void PnpManager::carry_out(const std::shared_ptr<Removal>& removal) {
  removal->phase_ = Removal::Phase::Removing;
  const auto take_away = [this](std::uint64_t id, const Steps::Next& next) {
    DeviceNode* node = tree_.find(id);
    if (node == nullptr || node->state() == NodeState::Removed) return next(true);
    take_down(*node, [this, id, next] {
      tree_.set_state(*tree_.find(id), NodeState::Removed, {});
      next(true);
    });
  };
  Steps::run(removal->nodes_, take_away, [this, removal] { finish(removal, Status::Ok, {}); });
}

void PnpManager::finish(const std::shared_ptr<Removal>& removal, Status status,
                        const std::string& reason) {
  removal->phase_ = Removal::Phase::Over;
  removal->done_(status, reason);
  tree_.end_action();
}

void PnpManager::take_down(DeviceNode& node, std::function<void()> then) {
  const std::uint64_t id = node.id();
  const auto destroy = [this, id, then = std::move(then)] {
    DeviceNode& gone = *tree_.find(id);
    tree_.destroy_children(gone);
    gone.destroy_stack();
    // It starts again as a device that is on, also if it was removed asleep.
    gone.system_power_ = SystemPower::Working;
    gone.device_power_ = DevicePower::D0;
    then();
  };
  if (!has_drivers(node)) return destroy();
  when_idle(id, [this, id, destroy] {
    tree_.send(tree_.find(id)->top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::Remove), {},
               [this, id, destroy](Irp&) { when_idle(id, destroy); });
  });
}

// Requests of kernel clients may still be on their way up. Polls, since the last one may be on
// another thread and must not touch the device after its return.
void PnpManager::when_idle(std::uint64_t id, std::function<void()> then) {
  if (tree_.find(id)->is_idle()) return then();
  idle_watch_ = tree_.executor().at(tree_.executor().now() + kFirstWatch,
                                    [this, id, then = std::move(then)] { when_idle(id, then); });
}

void PnpManager::surprise_remove(std::uint64_t top, Done done) {
  tree_.begin_action([this, top, done = std::move(done)] {
    DeviceNode* node = tree_.find_present(top);
    if (node == nullptr || node->parent() == nullptr) {
      done(Status::NotFound, "this device is not there any more");
      return tree_.end_action();
    }
    surprise(*node, "it was pulled out", [this, done] {
      done(Status::Ok, {});
      tree_.end_action();
    });
  });
}

void PnpManager::surprise(DeviceNode& top, const std::string& why, std::function<void()> then) {
  const auto tell = [this, why](std::uint64_t id, const Steps::Next& next) {
    DeviceNode& node = *tree_.find(id);
    const bool was_alive = node.is_started();
    tree_.set_state(node, NodeState::SurpriseRemoved, why);
    if (!was_alive) return next(true);
    tree_.send(node.top(), Major::Pnp, static_cast<std::uint32_t>(PnpMinor::SurpriseRemoval), {},
               [next](Irp&) { next(true); });
  };
  Steps::run(DeviceTree::ids_of(top, DeviceTree::Order::ChildrenFirst), tell,
             [this, id = top.id(), then = std::move(then)] {
               tree_.move_to_leaving(*tree_.find(id));
               watch_delay_ = kFirstWatch;
               watch_leaving();
               then();
             });
}

void PnpManager::watch_leaving() {
  watch_.reset();
  if (tree_.leaving().empty()) return;
  watch_ = tree_.executor().at(tree_.executor().now() + watch_delay_, [this] {
    watch_.reset();
    watch_delay_ = std::min(watch_delay_ * 2, kSlowestWatch);
    tree_.begin_action([this] { reap(); });
  });
}

void PnpManager::reap() {
  std::vector<std::uint64_t> free;
  for (const auto& top : tree_.leaving()) {
    // A device whose child is in use waits for it; the child does not wait for the device.
    std::set<const DeviceNode*> kept;
    for (const std::uint64_t id : DeviceTree::ids_of(*top, DeviceTree::Order::ChildrenFirst)) {
      const DeviceNode& node = *tree_.find(id);
      if (node.state() == NodeState::Removed) continue;
      if (node.is_idle() && !kept.contains(&node)) {
        free.push_back(id);
      } else {
        kept.insert(node.parent());
      }
    }
  }
  const auto take_away = [this](std::uint64_t id, const Steps::Next& next) {
    DeviceNode* node = tree_.find(id);
    if (node == nullptr) return next(true);
    take_down(*node, [this, id, next] {
      DeviceNode& gone = *tree_.find(id);
      tree_.set_state(gone, NodeState::Removed, {});
      if (gone.parent() == nullptr) tree_.destroy(gone);
      next(true);
    });
  };
  Steps::run(std::move(free), take_away, [this] {
    watch_leaving();
    tree_.end_action();
  });
}

}  // namespace ib::io
