// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device tree of softibd: the fabric's root device, and for each HCA a stack of ib_bus (the
// access layer's filter) on soft_hca (the functional device), with the names to open it under.
//
// Thread rule: the loop's thread.
#pragma once

#include "drivers/fabric_root.h"
#include "drivers/soft_hca.h"
#include "io/device.h"
#include "io/device_names.h"

#include <memory>
#include <string>
#include <vector>

namespace ib::softib {

class DaemonDevices {
 public:
  // Borrows all three until destroyed.
  static Result<std::unique_ptr<DaemonDevices>> create(platform::Executor& executor,
                                                       fabric::Fabric& fabric,
                                                       platform::DeviceMemoryHost& memory,
                                                       drivers::SoftHcaOptions options,
                                                       std::string& reason);

  drivers::FabricRoot& root() { return *root_; }
  const io::DeviceNames& names() const { return names_; }

 private:
  DaemonDevices() = default;
  Status build(const fabric::Fabric& fabric, std::string& reason);

  // In the order of construction: what is attached to something goes before it.
  std::unique_ptr<drivers::SoftHca> hcas_;
  std::unique_ptr<drivers::FabricRoot> root_;
  // No routines of its own yet: all requests go down to the HCA.
  io::DriverObject ib_bus_{"ib_bus"};
  std::vector<std::unique_ptr<io::DeviceObject>> buses_;
  io::DeviceNames names_;
};

}  // namespace ib::softib
