// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The driver's device, one for each child of a port that has its id; its routines; and the entry
// that softibd calls when it has loaded the module.
#include "echo.h"
#include "io/device_node.h"
#include "io/power_manager.h"

#include <utility>

namespace {

using namespace ib;

class EchoDevice final : public io::DeviceObject {
 public:
  EchoDevice(io::DriverObject& driver, const io::DeviceNode& node, al::System& system)
      : DeviceObject(driver, "echo on " + node.path(), io::DeviceKind::Functional),
        system_(system),
        where_(node.ids().properties) {}

  std::string note() const override { return echo_ ? echo_->note() : "not begun"; }

  void begin() {
    echo_ = std::make_unique<echo::Echo>(driver(), system_, where_);
    echo_->begin();
  }
  // Then the request goes on with `then`.
  void end(io::IrpRef request, io::DriverObject::Dispatch then) {
    if (!echo_) return then(*this, std::move(request));
    // A std::function requires that its target can be copied.
    auto held = std::make_shared<io::IrpRef>(std::move(request));
    echo_->end([this, held, then] { then(*this, std::move(*held)); });
  }

 private:
  al::System& system_;
  echo::Echo::Where where_;
  std::unique_ptr<echo::Echo> echo_;
};

// The port is there when the lower drivers have started it, or have handled cancel-remove.
void on_lower_ready(io::IrpRef irp, void* context) {
  if (irp->status == Status::Ok) static_cast<EchoDevice*>(context)->begin();
  std::move(irp).pass_up();
}

// An HCA with open files is not removed: its users close it, and open it again if it stays.
void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<EchoDevice&>(device);
  switch (static_cast<io::PnpMinor>(irp->code)) {
    case io::PnpMinor::Start:
    case io::PnpMinor::CancelRemove:
      return io::call_driver(*device.lower(), std::move(irp), &on_lower_ready, &self);
    case io::PnpMinor::QueryRemove:
    case io::PnpMinor::Remove:
    case io::PnpMinor::SurpriseRemoval: return self.end(std::move(irp), &io::pass_down);
    case io::PnpMinor::QueryDeviceRelations:
    case io::PnpMinor::QueryId: break;
  }
  io::pass_down(device, std::move(irp));
}

// When softibd ends, no device is removed: this is the last request that a driver gets.
// Sleep needs no code: work requests and control requests wait by themselves.
void on_power(io::DeviceObject& device, io::IrpRef irp) {
  const auto& request = *irp->parameters.get<io::PowerRequest>();
  if (request.is_system && request.system == io::SystemPower::Shutdown) {
    return static_cast<EchoDevice&>(device).end(std::move(irp), &io::follow_system_power);
  }
  io::follow_system_power(device, std::move(irp));
}

Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver, io::DeviceNode& node,
                                                     std::string& reason) {
  auto* system = driver.services.get<al::System>();
  if (system == nullptr || !node.ids().properties.contains("ca_guid")) {
    reason = "echo is for children of a port";
    return Status::NotSupported;
  }
  return std::unique_ptr<io::DeviceObject>(std::make_unique<EchoDevice>(driver, node, *system));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ib::Status softib_driver_entry_1(
    ib::io::DriverObject& driver, std::string&) {
  driver.add_device = &add_device;
  driver.on(io::Major::Pnp) = &on_pnp;
  driver.on(io::Major::Power) = &on_power;
  return ib::Status::Ok;
}
