// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device of a function driver for the children of ports, and its routines. Its Instance begins
// when the port is there and ends before the port goes. An instance is made from the driver, the
// access layer and the properties of the child (Where). It has begin(); end(done), after which it
// may be destroyed; note(), which `softib devices` shows; and the name of the driver (kName).
#pragma once

#include "al/verbs.h"
#include "io/device_node.h"
#include "io/power_manager.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace parts {

template <class Instance>
class PortChild final : public ib::io::DeviceObject {
 public:
  PortChild(ib::io::DriverObject& driver, const ib::io::DeviceNode& node, ib::al::System& system)
      : DeviceObject(driver, std::string(Instance::kName) + " on " + node.path(),
                     ib::io::DeviceKind::Functional),
        system_(system),
        where_(node.ids().properties) {}

  std::string note() const override { return instance_ ? instance_->note() : "not begun"; }

  // For the entry that softibd calls when it has loaded the module.
  static void set_routines(ib::io::DriverObject& driver) {
    driver.add_device = &add_device;
    driver.on(ib::io::Major::Pnp) = &on_pnp;
    driver.on(ib::io::Major::Power) = &on_power;
  }

 private:
  void begin() {
    instance_ = std::make_unique<Instance>(driver(), system_, where_);
    instance_->begin();
  }
  // Then the request goes on with `then`.
  void end(ib::io::IrpRef request, ib::io::DriverObject::Dispatch then) {
    if (!instance_) return then(*this, std::move(request));
    // A std::function requires that its target can be copied.
    auto held = std::make_shared<ib::io::IrpRef>(std::move(request));
    instance_->end([this, held, then] { then(*this, std::move(*held)); });
  }

  // The port is there when the lower drivers have started it, or have handled cancel-remove.
  static void on_lower_ready(ib::io::IrpRef irp, void* context) {
    if (irp->status == ib::Status::Ok) static_cast<PortChild*>(context)->begin();
    std::move(irp).pass_up();
  }

  // An HCA with open files is not removed: its users close it, and open it again if it stays.
  static void on_pnp(ib::io::DeviceObject& device, ib::io::IrpRef irp) {
    using ib::io::PnpMinor;
    auto& self = static_cast<PortChild&>(device);
    switch (static_cast<PnpMinor>(irp->code)) {
      case PnpMinor::Start:
      case PnpMinor::CancelRemove:
        return ib::io::call_driver(*device.lower(), std::move(irp), &on_lower_ready, &self);
      case PnpMinor::QueryRemove:
      case PnpMinor::Remove:
      case PnpMinor::SurpriseRemoval: return self.end(std::move(irp), &ib::io::pass_down);
      case PnpMinor::QueryDeviceRelations:
      case PnpMinor::QueryId: break;
    }
    ib::io::pass_down(device, std::move(irp));
  }

  // When softibd ends, no device is removed: this is the last request that a driver gets.
  // Sleep needs no code: work requests and control requests wait by themselves.
  static void on_power(ib::io::DeviceObject& device, ib::io::IrpRef irp) {
    const auto& request = *irp->parameters.get<ib::io::PowerRequest>();
    if (request.is_system && request.system == ib::io::SystemPower::Shutdown) {
      return static_cast<PortChild&>(device).end(std::move(irp), &ib::io::follow_system_power);
    }
    ib::io::follow_system_power(device, std::move(irp));
  }

  static ib::Result<std::unique_ptr<ib::io::DeviceObject>> add_device(ib::io::DriverObject& driver,
                                                                      ib::io::DeviceNode& node,
                                                                      std::string& reason) {
    auto* system = driver.services.get<ib::al::System>();
    if (system == nullptr || !node.ids().properties.contains("ca_guid")) {
      reason = std::string(Instance::kName) + " is for children of a port";
      return ib::Status::NotSupported;
    }
    return std::unique_ptr<ib::io::DeviceObject>(
        std::make_unique<PortChild>(driver, node, *system));
  }

  ib::al::System& system_;
  typename Instance::Where where_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace parts
