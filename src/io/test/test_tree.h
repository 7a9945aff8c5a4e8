// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the tests of this folder: a device tree in virtual time whose buses and drivers follow the
// test's instructions.
#pragma once

#include "io/irp_queue.h"
#include "io/pnp_manager.h"
#include "io/power_manager.h"
#include "platform/virtual_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ib::io::test {

// A physical device under the test's control.
struct Thing final : DeviceObject {
  Thing(DriverObject& driver, std::string name, std::string hardware)
      : DeviceObject(driver, name, DeviceKind::Physical) {
    ids.device = hardware.empty() ? "TEST\\RAW" : hardware;
    ids.instance = std::move(name);
    ids.hardware = {ids.device};
    ids.raw = hardware.empty();
  }
  DeviceIds ids;
  std::vector<std::shared_ptr<Thing>> children;
};

// The behaviour of the functional driver of a device, by the device's name.
struct Behaviour {
  std::string refuse_start;
  std::string veto_remove;
  std::string veto_power;
  std::string fail_power_down;
  std::string fail_wake;
  bool take_time = false;           // QueryRemove and power requests wait in `slow`
  bool keep_requests = false;       // so do control requests, whatever happens to the device
  std::function<void()> on_remove;  // runs during the driver's Remove
};

class TestTree;

struct Function final : DeviceObject {
  Function(TestTree& of, DriverObject& driver, const std::string& name)
      : DeviceObject(driver, name, DeviceKind::Functional), tree(of) {}
  ~Function() override;
  TestTree& tree;
  IrpQueue waiting;  // control requests, until the device goes
  bool removed = false;
};

// classes: allow(members) a fixture: a tree, its managers, and what tests look at
class TestTree {
 public:
  TestTree()
      : drivers(executor, nullptr),
        tree(executor, [this](const std::string& line) { lines.push_back(line); }),
        pnp(tree, drivers),
        power(tree, pnp) {
    bus.on(Major::Pnp) = &bus_pnp;
    root = std::make_shared<Thing>(bus, "root", "");
    add_driver("fn", {"TEST\\FN"}, DriverKind::Function);
  }
  ~TestTree() { slow.fail_all(Status::Cancelled, "the test is over"); }

  void add_driver(const std::string& name, std::vector<std::string> ids, DriverKind kind,
                  std::vector<std::string> depends = {}) {
    std::string why;
    const Status added = drivers.add(
        {name, kind, std::move(ids), std::move(depends), "", ""},
        [this](DriverObject& driver, std::string&) {
          driver.extension_pointer.set(this);
          driver.add_device = &add_device;
          driver.on(Major::Pnp) = &function_pnp;
          driver.on(Major::Power) = &function_power;
          driver.on(Major::DeviceControl) = &function_control;
          driver.on(Major::Shutdown) = &function_shutdown;
          log.push_back("load " + driver.name);
          return refuse_entry ? Status::NotSupported : Status::Ok;
        },
        why);
    ASSERT_EQ(added, Status::Ok) << why;
  }

  // Adds to what a bus has; enumerate() finds it.
  std::shared_ptr<Thing> plug(Thing& parent, const std::string& name, const std::string& hardware) {
    auto thing = std::make_shared<Thing>(bus, name, hardware);
    parent.children.push_back(thing);
    return thing;
  }
  void unplug(Thing& parent, std::string name) {
    std::erase_if(parent.children, [&](const auto& c) { return c->name() == name; });
  }
  void begin() {
    pnp.begin(root, into(status));
    EXPECT_EQ(run(), Status::Ok);
  }
  Status enumerate(const std::string& name) {
    pnp.enumerate(node(name)->id(), into(status));
    return run();
  }
  Status remove(const std::string& name) {
    pnp.remove({node(name)->id()}, into(status));
    return run();
  }
  Status eject(const std::string& name) {
    pnp.surprise_remove(node(name)->id(), into(status));
    return run();
  }
  Status start(const std::string& name) {
    pnp.start({node(name)->id()}, into(status));
    return run();
  }
  Status set_power(const std::string& name, SystemPower state) {
    power.set(node(name)->id(), state, into(status));
    return run();
  }
  Status run(Duration span = std::chrono::milliseconds(200)) {
    executor.advance(span);
    return status;
  }
  PnpManager::Done into(Status& to) {
    to = Status::Pending;
    return [this, &to](Status result, const std::string& why) {
      to = result;
      reason = why;
    };
  }

  DeviceNode* node(const std::string& name) const {
    return tree.find_if([&](const DeviceNode& n) { return n.physical().name() == name; });
  }
  NodeState state(const std::string& name) const { return node(name)->state(); }
  // The requests that the drivers have got since the last call.
  std::vector<std::string> heard() { return std::exchange(log, {}); }

  platform::VirtualExecutor executor;
  std::vector<std::string> lines;
  std::vector<std::string> log;
  std::map<std::string, Behaviour> behaviour;
  bool refuse_entry = false;
  std::size_t functions = 0;  // device objects that exist
  IrpQueue slow;              // requests that slow drivers hold
  Status status = Status::Ok;
  std::string reason;

  DriverObject bus{"test_bus"};
  std::shared_ptr<Thing> root;
  DriverRegistry drivers;  // outlives the tree, whose devices name their drivers
  DeviceTree tree;
  PnpManager pnp;
  PowerManager power;

 private:
  friend struct Function;

  static void bus_pnp(DeviceObject& device, IrpRef irp) {
    auto& thing = static_cast<Thing&>(device);
    const auto minor = static_cast<PnpMinor>(irp->code);
    if (minor == PnpMinor::QueryId) *irp->parameters.get<DeviceIds>() = thing.ids;
    if (minor == PnpMinor::QueryDeviceRelations) {
      auto& devices = irp->parameters.get<DeviceRelations>()->devices;
      devices.insert(devices.end(), thing.children.begin(), thing.children.end());
    }
    std::move(irp).complete(Status::Ok);
  }
  static Result<std::unique_ptr<DeviceObject>> add_device(DriverObject& driver, DeviceNode& node,
                                                          std::string&) {
    auto& self = driver.extension<TestTree>();
    ++self.functions;
    return std::unique_ptr<DeviceObject>(
        std::make_unique<Function>(self, driver, node.physical().name()));
  }
  static void answer(DeviceObject& device, IrpRef irp, const std::string& refusal, bool slowly) {
    auto& self = static_cast<Function&>(device).tree;
    if (slowly) return self.slow.park(std::move(irp));
    if (!refusal.empty()) return std::move(irp).fail(Status::DeviceBusy, refusal);
    pass_down(device, std::move(irp));
  }
  static void function_pnp(DeviceObject& device, IrpRef irp) {
    auto& function = static_cast<Function&>(device);
    TestTree& self = function.tree;
    const Behaviour& behaves = self.behaviour[device.name()];
    const auto minor = static_cast<PnpMinor>(irp->code);
    if (minor != PnpMinor::QueryDeviceRelations) {
      self.log.push_back(device.name() + ": " + pnp_name(minor));
    }
    if (minor == PnpMinor::Start) {
      return answer(device, std::move(irp), behaves.refuse_start, false);
    }
    if (minor == PnpMinor::QueryRemove) {
      return answer(device, std::move(irp), behaves.veto_remove, behaves.take_time);
    }
    if (minor == PnpMinor::Remove && behaves.on_remove) behaves.on_remove();
    if (minor == PnpMinor::SurpriseRemoval || minor == PnpMinor::Remove) {
      function.removed = true;
      function.waiting.fail_all(Status::DeviceRemoved, "the device has gone");
    }
    pass_down(device, std::move(irp));
  }
  static void function_power(DeviceObject& device, IrpRef irp) {
    auto& self = static_cast<Function&>(device).tree;
    const Behaviour& behaves = self.behaviour[device.name()];
    const PowerRequest& request = *irp->parameters.get<PowerRequest>();
    if (request.is_system) return follow_system_power(device, std::move(irp));
    const bool query = irp->code == static_cast<std::uint32_t>(PowerMinor::Query);
    const bool down = request.device == DevicePower::D3;
    self.log.push_back(device.name() + ": " + (query ? "query " : "set ") + (down ? "D3" : "D0"));
    answer(device, std::move(irp),
           query  ? behaves.veto_power
           : down ? behaves.fail_power_down
                  : behaves.fail_wake,
           behaves.take_time && query);
  }
  static void function_control(DeviceObject& device, IrpRef irp) {
    auto& function = static_cast<Function&>(device);
    TestTree& self = function.tree;
    if (self.behaviour[device.name()].keep_requests) return self.slow.park(std::move(irp));
    if (function.removed) return std::move(irp).fail(Status::DeviceRemoved, "gone");
    function.waiting.park(std::move(irp));
  }
  static void function_shutdown(DeviceObject& device, IrpRef irp) {
    static_cast<Function&>(device).tree.log.push_back(device.name() + ": last chance");
    pass_down(device, std::move(irp));
  }
};

inline Function::~Function() {
  --tree.functions;
}

}  // namespace ib::io::test
