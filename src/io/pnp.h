// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of the PnP and power managers to the drivers of a device stack: Major::Pnp and
// Major::Power. `Irp::code` is the minor function, `Irp::parameters` the structure named beside it.
//
// A driver passes minor functions down that it does not handle; the bottom of a stack returns Ok. A
// refusal is an error with a reason in words, which goes to the requestor.
#pragma once

#include "base/export.h"
#include "io/typed_pointer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ib::io {

class DeviceObject;

enum class PnpMinor : std::uint32_t {
  Start,                 // the stack is complete: begin. Lower drivers first
  QueryRemove,           // may the device go? An error vetoes
  CancelRemove,          // it stays after all
  Remove,                // end everything; files are closed, nothing else is under way
  SurpriseRemoval,       // the hardware is gone: fail outstanding and new requests
  QueryDeviceRelations,  // DeviceRelations: each driver adds the children it is the bus of
  QueryId,               // DeviceIds: answered by the physical device
};

// In the form of ibbus: "IBA\IPoIB".
struct IB_DRIVER_API DeviceIds {
  std::string device;                   // the most exact one
  std::string instance;                 // unique among the children of one parent
  std::vector<std::string> hardware;    // exact ones first
  std::vector<std::string> compatible;  // drivers for these come after those for hardware ids
  std::string description;
  std::string location;
  // Properties of the device from its bus, by name; ib_bus: host, ca_guid, port, pkey.
  std::map<std::string, std::string> properties;
  bool raw = false;  // works without a functional driver
};

// Bus and device node share a physical device: it lives until both have released it.
struct IB_DRIVER_API DeviceRelations {
  std::vector<std::shared_ptr<DeviceObject>> devices;
};

enum class PowerMinor : std::uint32_t {
  Query,  // PowerRequest: may it go there? An error vetoes
  Set,    // PowerRequest: go there
};

enum class SystemPower : std::uint8_t { Working, Sleep, Hibernate, Shutdown };
enum class DevicePower : std::uint8_t { D0, D3 };  // in service, off

// Exactly one of two kinds: of the system (to the function driver, which follows with a device
// request of its own), or of this device.
struct IB_DRIVER_API PowerRequest {
  bool is_system = true;
  SystemPower system = SystemPower::Working;
  DevicePower device = DevicePower::D0;
};

const char* pnp_name(PnpMinor minor);  // "query-remove"
const char* system_power_name(SystemPower power);
constexpr DevicePower device_power_in(SystemPower system) {
  return system == SystemPower::Working ? DevicePower::D0 : DevicePower::D3;
}

}  // namespace ib::io
