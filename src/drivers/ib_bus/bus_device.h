// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// BusDevice: a physical device of softib_bus or ib_bus: its ids, what is below it, and the answers
// to the PnP requests that concern these.
#pragma once

#include "io/device.h"
#include "io/pnp.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ib::drivers {

struct BusDevice : io::DeviceObject {
  BusDevice(io::DriverObject& driver, io::DeviceIds device_ids)
      : DeviceObject(driver, device_ids.device + "\\" + device_ids.instance,
                     io::DeviceKind::Physical),
        ids(std::move(device_ids)) {}

  io::DeviceIds ids;
  std::vector<std::shared_ptr<io::DeviceObject>> children;
};

// Major::Pnp of a BusDevice. Minors that it does not handle are Ok, as no device is below it.
inline void answer_bus_pnp(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<BusDevice&>(device);
  const auto minor = static_cast<io::PnpMinor>(irp->code);
  if (minor == io::PnpMinor::QueryId) *irp->parameters.get<io::DeviceIds>() = self.ids;
  if (minor == io::PnpMinor::QueryDeviceRelations) {
    auto& devices = irp->parameters.get<io::DeviceRelations>()->devices;
    devices.insert(devices.end(), self.children.begin(), self.children.end());
  }
  std::move(irp).complete(Status::Ok);
}

}  // namespace ib::drivers
