// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PowerManager: the system, or one host of it, goes to sleep, wakes up and goes down
// (docs/design/0004). io/pnp.h has its requests to drivers.
//
// Thread rule: the executor's thread, dispatch level. One action at a time, shared with PnP.
#pragma once

#include "io/device_tree.h"
#include "io/pnp_manager.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ib::io {

class PowerManager {
 public:
  using Done = PnpManager::Done;

  PowerManager(DeviceTree& tree, PnpManager& pnp) : tree_(tree), pnp_(pnp) {}
  PowerManager(const PowerManager&) = delete;
  PowerManager& operator=(const PowerManager&) = delete;
  ~PowerManager() { IB_ASSERT(last_chances_.empty()); }

  // Takes a node and all below it to a state. Sleep, Hibernate: DeviceBusy after a veto, or the
  // error of a device that failed; nothing has changed then. Working: Ok; devices that do not come
  // back are taken as surprise-removed. Shutdown: Ok. InvalidState: it is there already
  // (Working: with all below it), or a node above it sleeps.
  void set(std::uint64_t top, SystemPower state, Done done);

  // These devices get a request of Major::Shutdown before anything is powered down for a shutdown,
  // the last registered first. A driver takes its device off before it is destroyed.
  void add_last_chance(DeviceObject& device) { last_chances_.push_back(&device); }
  void remove_last_chance(DeviceObject& device) { std::erase(last_chances_, &device); }

 private:
  struct Transition;

  Status check(std::uint64_t top, SystemPower state, std::string& reason) const;
  void query(const std::shared_ptr<Transition>& transition);
  void power_down(const std::shared_ptr<Transition>& transition);
  void roll_back(const std::shared_ptr<Transition>& transition);
  void wake(const std::shared_ptr<Transition>& transition);
  bool sleeps_below(std::uint64_t top) const;
  void wake_hosts(DeviceNode& top, SystemPower wanted);
  void start_waiting(std::uint64_t top);
  void notify_last_chances(const std::shared_ptr<Transition>& transition);
  void finish(const std::shared_ptr<Transition>& transition, Status status,
              const std::string& reason);
  void send(DeviceNode& node, PowerMinor minor, SystemPower state, DeviceTree::Answered answered);

  DeviceTree& tree_;
  PnpManager& pnp_;
  std::vector<DeviceObject*> last_chances_;
};

// For function drivers, as their dispatch routine of Major::Power or from it: a system request is
// followed by a device request to the top of the own stack, so that filters see it; its result,
// and then the system request goes down. Device requests go down at once.
IB_DRIVER_API void follow_system_power(DeviceObject& device, IrpRef irp);

}  // namespace ib::io
